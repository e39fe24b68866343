"""The transformer user: a member of the group that writes what it reads to the output topic, in transactions.

Owns which of the delivered records a transaction has, and the crash in the middle of one. Does not own the steps of a
transaction (``loadgen.members.output``) nor the rest of a member's life (``loadgen.users.member``).
"""

from __future__ import annotations

from functools import partial

import gevent

from loadgen.clients.base import ProducerClient
from loadgen.group_plan import LifeEnd
from loadgen.members.choice import make_output
from loadgen.members.events import Transacted
from loadgen.members.output import Transformation, delivered
from loadgen.users.member import ABANDONED_S, POLL_S, MemberUser
from loadgen.users.threads import begin_waiting

#: How long a member that is to crash waits for records. It may have no partitions.
CRASH_WAIT_NS = 4_000_000_000


class TransformerUser(MemberUser):
    """Takes a place in the group with a consumer and a transactional producer."""

    abstract = False

    def _begin(self) -> None:
        super()._begin()
        settings = self._process.settings
        output = make_output(self._place, self._bootstrap, settings, self._clock)
        self._transformation = Transformation(output, settings.topic, self._clock)
        self._is_initialized = False

    @property
    def _may_end(self) -> bool:
        """Like any member, but one that is to crash waits a while for a transaction in which to crash."""
        is_to_crash = self._life.end is LifeEnd.CRASH
        return self._clock.monotonic_ns() >= self._ends_ns + (CRASH_WAIT_NS if is_to_crash else 0)

    def _turn(self) -> bool:
        """Poll once, and make a transaction for the records. Returns whether this life continues."""
        if not self._is_initialized:
            error = begin_waiting(self._member.is_cooperative, self._transformation.initialize).get()
            if error is not None:
                self._process.recorder.error(f"init_transactions: {error}", topic=self._process.settings.topic)
                return False
            self._is_initialized = True
        events, continues = self._do(partial(self._member.poll, POLL_S))
        records = delivered(events)
        if not records or not continues:
            return continues
        is_to_crash = self._is_due and self._life.end is LifeEnd.CRASH
        work = partial(self._transformation.transact, records, self._member, is_to_crash=is_to_crash)
        made: Transacted = begin_waiting(self._member.is_cooperative, work).get()
        self._recording.record([made])
        return made.is_committed

    def _end(self, how: LifeEnd) -> None:
        super()._end(how)
        output: ProducerClient = self._transformation.output
        if how is LifeEnd.CRASH:
            # dispose of it later, because closing it would abort the open transaction
            self._abandoned.append(gevent.spawn(self._dispose_later, output))
        else:
            self._process.disposals.dispose(output)

    def _dispose_later(self, output: ProducerClient) -> None:
        try:
            gevent.sleep(ABANDONED_S)
        finally:
            self._process.disposals.dispose(output)
