"""GroupIo: the connection to the coordinator, carried on beside the program, so that a slow one misses no heartbeat.

Owns the lock of ``GroupCore``, one turn, and the end after the last; whose turn it is when, mostly a thread's, is the
``Runner``'s. A thin shell: what is asked and what answers mean is the core's. Does not own what a program has to do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cluster.client.cluster_view import BrokerAddress
from cluster.client.consumer.group.group_core import GroupCore
from cluster.client.consumer.group.group_messages import answer_of, message_of
from cluster.client.consumer.group.group_requests import (
    DropConnection,
    GroupAction,
    GroupAnswer,
    GroupRequest,
    JoinGroup,
    SendGroupRequest,
)
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse, Polled
from cluster.client.wiring import ClientIo
from cluster.config.keys import INT_MAX
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.runner import Runner
from cluster.seams.units import ms_of_seconds

logger = logging.getLogger(__name__)

#: How much longer ``close`` waits for the thread than that waits for answers.
_LAST_WAIT_S = 5.0


class GroupIo:
    """Everything may be called from any thread. ``on_change`` is called when an answer has come, from its own."""

    def __init__(
        self, core: GroupCore, io: ClientIo, clock: Clock, runner: Runner, on_change: Callable[[], object]
    ) -> None:
        self._core = core
        self._io = io
        self._clock = clock
        self._runner = runner
        self._on_change = on_change
        self._lock = threading.Lock()
        self._polled = Polled([], [], [])
        self._unsent: list[SendGroupRequest] = []
        # Answers that no node has given.
        self._early: list[tuple[GroupRequest, GroupAnswer]] = []
        self._is_started = False
        self._closes_at_ms: float | None = None
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"GroupIo({self._core!r}, {self._runner!r})"

    @contextmanager
    def seeing(self) -> Iterator[GroupCore]:
        """The core, for a look at it. Raises ``RuntimeError`` if nothing carries it on."""
        if self._failure is not None:
            raise RuntimeError("this consumer cannot continue") from self._failure
        if self._is_started and self._closes_at_ms is None and self._runner.has_ended:
            raise RuntimeError("a consumer does not survive fork(): create a new one in the child process")
        with self._lock:
            yield self._core

    @contextmanager
    def using(self) -> Iterator[GroupCore]:
        """The core, for a change that is acted on at once."""
        with self.seeing() as core:
            yield core
            if not self._is_started and self._closes_at_ms is None:
                self._is_started = True
                self._runner.start(self._step)
        self._io.network.wakeup()

    @property
    def is_carried_on_here(self) -> bool:
        """Whether no turn can come before the caller is done: waiting for one would never end."""
        return self._runner.is_current

    def close(self, timeout_s: float) -> None:
        """What is under way is finished, for at most so long; then the connections are closed."""
        with self._lock:
            self._closes_at_ms = self._clock.monotonic_ms() + ms_of_seconds(timeout_s)
            is_started = self._is_started and not self._runner.has_ended
        if not is_started:
            self._io.network.close()
            return
        self._io.network.wakeup()
        if not self._runner.is_current and not self._runner.join(timeout_s + _LAST_WAIT_S):
            logger.warning("the connection to the coordinator is not closed yet")

    def _step(self) -> bool:
        """A turn, and what is to be done after the last, however that ended; False then."""
        is_last = True
        try:
            is_last = not self._turn()
        except BaseException as error:
            logger.exception("the thread of the consumer's group failed")
            self._failure = error
            self._on_change()
        finally:
            if is_last:
                self._io.network.close()
        return not is_last

    def _turn(self) -> bool:
        """One turn; False after the last."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            has_news = self._tell(now_ms)
            actions = self._core.tick(now_ms)
            wake_ms = self._core.wake_ms()
            ends_ms = self._closes_at_ms
            is_over = ends_ms is not None and (self._core.is_idle or ends_ms <= now_ms)
        if has_news:
            self._on_change()
        if is_over:
            return False
        waits: list[float] = [each - now_ms for each in (wake_ms, ends_ms) if each is not None]
        self._carry_out(actions)
        waits += self._send()
        delay_ms = self._io.updater.maybe_update()
        if delay_ms is not None:
            waits.append(delay_ms)
        if self._early:
            waits.append(0)
        polled = self._io.network.poll(max(0, min(waits)) if waits else None)
        self._polled = Polled(self._io.updater.absorb(polled), polled.ready, polled.lost)
        return True

    def _tell(self, now_ms: int) -> bool:
        """Give the core what has come since the last turn. Whether that was anything."""
        early, self._early = self._early, []
        answers = [*early, *((response.context, _answer(response)) for response in self._polled.responses)]
        unreachable = {lost.node_id for lost in self._polled.lost if not lost.was_ready}
        gone = [each for each in self._unsent if each.node is not None and _apart(each.node).broker_id in unreachable]
        self._unsent = [each for each in self._unsent if each not in gone]
        answers += [(each.request, GroupAnswer(ErrorCode.NETWORK_EXCEPTION)) for each in gone]
        self._polled = Polled([], [], [])
        for request, answer in answers:
            self._core.answered(request, answer, now_ms)
        return bool(answers)

    def _carry_out(self, actions: list[GroupAction]) -> None:
        for action in actions:
            if isinstance(action, DropConnection):
                self._io.network.disconnect(_apart_id(action.node_id), action.reason)
            else:
                self._unsent.append(action)

    def _send(self) -> list[float]:
        """Send what nodes take now. Returns after how many milliseconds they may take more."""
        waits: list[float] = []
        unsent, self._unsent = self._unsent, []
        for action in unsent:
            broker = self._any_broker() if action.node is None else _apart(action.node)
            if broker is not None and self._io.network.ready(broker):
                self._send_to(broker.broker_id, action.request)
                continue
            self._unsent.append(action)
            known = self._io.metadata.view.brokers if broker is None else (broker.broker_id,)
            delays = [self._io.network.delay_ms(node_id) for node_id in known]
            waits += [delay_ms for delay_ms in delays if delay_ms is not None]
        return waits

    def _any_broker(self) -> BrokerAddress | None:
        brokers = self._io.metadata.view.brokers
        node_id = self._io.network.least_loaded(brokers)
        return None if node_id is None else brokers[node_id]

    def _send_to(self, node_id: int, request: GroupRequest) -> None:
        timeout_ms = request.timeout_ms if isinstance(request, JoinGroup) else None
        try:
            self._io.network.send_message(node_id, message_of(request), request, timeout_ms=timeout_ms)
        except UnsupportedVersion as error:
            logger.warning("node %d cannot be asked: %s", node_id, error)
            self._early.append((request, GroupAnswer(ErrorCode.UNSUPPORTED_VERSION)))


def _apart_id(broker_id: int) -> int:
    return INT_MAX - broker_id


def _apart(broker: BrokerAddress) -> BrokerAddress:
    """The coordinator has a connection of its own, as in Kafka: a JoinGroup that waits holds up what is behind it."""
    return BrokerAddress(_apart_id(broker.broker_id), broker.host, broker.port)


def _answer(response: ClientResponse) -> GroupAnswer:
    if response.failure is None:
        return answer_of(response.context, response.answer)
    return GroupAnswer(ErrorCode.REQUEST_TIMED_OUT if response.is_timeout else ErrorCode.NETWORK_EXCEPTION)
