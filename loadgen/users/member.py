"""The member user: one place in the consumer group of the load, taken by one consumer after the other.

Owns the loop of a life under Locust, and its end before its time by an order (``loadgen.orders``). Does not own how
long lives are (``loadgen.group_plan``), what is recorded (``loadgen.members.recording``), nor the clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent
from locust import User, constant, task

from cluster.seams.units import ns_of_seconds
from loadgen.group_plan import GROUP, Life, LifeEnd, MemberName
from loadgen.members.choice import make_member
from loadgen.members.confluent import ConfluentMember
from loadgen.members.events import MemberClient, MemberEvent
from loadgen.members.recording import MemberRecording
from loadgen.users.load import process_of
from loadgen.users.threads import begin_waiting

logger = logging.getLogger(__name__)

POLL_S = 0.1
COMMIT_NS = 300_000_000
#: When an abandoned consumer is released: after more than a session, so that it is out of the group.
ABANDONED_S = 10.0
RELEASE_TIMEOUT_S = 5.0


class MemberUser(User):  # type: ignore[misc]
    """Takes a place in the group and leaves it, over and over."""

    abstract = False
    wait_time = constant(0)

    def on_start(self) -> None:
        self._process = process_of(self.environment)
        self._clock = self._process.clock
        self._members = self._process.members
        self._place = next(self._process.member_places)
        settings = self._process.settings
        self._bootstrap = self.environment.host or settings.readers_bootstrap
        self._lives = self._place.lives(settings.run_id, self._members.lives_s)
        self._instance = self._obeyed = 0
        self._life: Life
        self._abandoned: list[Any] = []
        self._ends_ns = self._commits_ns = -1
        self._begin()

    @task  # type: ignore[untyped-decorator]
    def take_part(self) -> None:
        """Do one turn, and end this life if it is due, or if the consumer cannot continue."""
        self._obey()
        continues = self._turn()
        if self._may_end or not continues:
            life = self._life
            # a consumer that failed leaves the group, if it still can
            self._end(life.end if continues or life.end is LifeEnd.CRASH else LifeEnd.LEAVE)
            gevent.sleep(life.absence_s)
            self._begin()

    def _obey(self) -> None:
        """If there is an order, make this life end now."""
        order = self._process.orders.take(self._place.number)
        if order is not None:
            self._life = self._life._replace(end=order.end, absence_s=order.absence_s)
            self._ends_ns = self._clock.monotonic_ns()
            self._obeyed = order.number

    @property
    def _is_due(self) -> bool:
        """Whether this life has lasted as long as it should, or was ordered to end."""
        return self._clock.monotonic_ns() >= self._ends_ns

    @property
    def _may_end(self) -> bool:
        """Whether a life that is due to end has nothing left to do."""
        return self._is_due

    def _turn(self) -> bool:
        """Poll once, and commit if it is time. Returns whether this life continues."""
        _, continues = self._do(partial(self._member.poll, POLL_S))
        now_ns = self._clock.monotonic_ns()
        if continues and not self._is_due and now_ns >= self._commits_ns:
            self._commits_ns = now_ns + COMMIT_NS
            self._do(self._member.commit)
        return continues

    def on_stop(self) -> None:
        self._end(LifeEnd.LEAVE)
        gevent.joinall(self._abandoned, timeout=RELEASE_TIMEOUT_S)

    def _begin(self) -> None:
        self._life = next(self._lives)
        settings = self._process.settings
        name = MemberName(self._process.process, self._place.number, self._instance, self._obeyed)
        self._instance += 1
        self._member: MemberClient = make_member(
            self._place, str(name), self._bootstrap, settings, self._members, self._clock
        )
        self._recording = MemberRecording(self._process.recorder, GROUP, settings.topic, settings.run_id)
        now_ns = self._clock.monotonic_ns()
        self._ends_ns = now_ns + ns_of_seconds(self._life.seconds)
        self._commits_ns = now_ns + COMMIT_NS

    def _end(self, how: LifeEnd) -> None:
        if how is LifeEnd.CRASH:
            self._do(self._member.abandon)
            if isinstance(self._member, ConfluentMember):
                self._abandoned = [each for each in self._abandoned if not each.ready()]
                self._abandoned.append(gevent.spawn(_release, self._member))
        else:
            self._do(self._member.close)
        self._recording.ended(how.value, self._clock.monotonic_ns())

    def _do(self, work: Callable[[], list[MemberEvent]]) -> tuple[list[MemberEvent], bool]:
        """Have the client do some work, and record its events. Returns them, and whether the consumer can continue."""
        events: list[MemberEvent] = begin_waiting(self._member.is_cooperative, work).get()
        self._member.pass_on()
        return events, self._recording.record(events)


def _release(member: ConfluentMember) -> None:
    try:
        gevent.sleep(ABANDONED_S)
    finally:
        gevent.get_hub().threadpool.spawn(member.release)
