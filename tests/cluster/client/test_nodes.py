"""Nodes: states of connections, pauses, deadlines, and the least loaded node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.client.backoff import ExponentialBackoff
from cluster.client.errors import UnsupportedVersion
from cluster.client.nodes import Nodes, NodeState
from cluster.protocol.apis import ApiKey
from cluster.protocol.connection import UnexpectedResponse
from cluster.seams.randomness import Random

MAX_IN_FLIGHT = 3
MAX_IDLE_MS = 10_000
WINDOWS = {int(ApiKey.PRODUCE): (0, 7)}


def nodes(seed: int = 1, max_idle_ms: int = MAX_IDLE_MS) -> Nodes[object]:
    random = Random(seed)
    return Nodes(
        reconnect=ExponentialBackoff(50, 1000, random),
        setup_timeout=ExponentialBackoff(2_000, 8_000, random),
        max_in_flight=MAX_IN_FLIGHT,
        max_idle_ms=max_idle_ms,
        random=random,
    )


def make_ready(all_nodes: Nodes[object], node_id: int, now_ms: int = 0) -> None:
    all_nodes.connecting(node_id, now_ms)
    all_nodes.connected(node_id, now_ms)
    all_nodes.ready(node_id, WINDOWS, now_ms)


def send(all_nodes: Nodes[object], node_id: int, context: object = None, *, now_ms: int = 0, deadline_ms: int = 100):
    correlation_id = all_nodes.next_correlation_id(node_id)
    all_nodes.sent(node_id, correlation_id, deadline_ms, context, now_ms)
    return correlation_id


def test_the_way_to_a_ready_connection():
    """Disconnected, connecting, checking versions, ready: only then requests are taken and versions known."""
    known = nodes()
    states = [known.state(1)]
    assert known.can_connect(1, 0)
    assert known.delay_ms(1, 0) == 0
    known.connecting(1, 0)
    states.append(known.state(1))
    assert not known.can_connect(1, 0)
    assert known.delay_ms(1, 0) is None
    known.connected(1, 5)
    states.append(known.state(1))
    assert not known.can_send(1, 5)
    with pytest.raises(UnsupportedVersion, match="node 1 has not told"):
        known.version(1, ApiKey.PRODUCE)
    known.ready(1, WINDOWS, 6)
    states.append(known.state(1))
    assert states == list(NodeState)
    assert known.can_send(1, 6)
    assert known.version(1, ApiKey.PRODUCE) == 7
    with pytest.raises(UnsupportedVersion, match="does not serve METADATA"):
        known.version(1, ApiKey.METADATA)


def test_requests_in_flight_are_bounded():
    """A node with max.in.flight.requests takes no more until a response came."""
    known = nodes()
    make_ready(known, 1)
    first = send(known, 1, "first")
    for _ in range(MAX_IN_FLIGHT - 1):
        send(known, 1)
    assert not known.can_send(1, 0)
    assert known.delay_ms(1, 0) is None
    assert known.received(1, first, 1).context == "first"
    assert known.can_send(1, 1)
    with pytest.raises(UnexpectedResponse):
        known.received(1, first, 1)


def test_what_was_in_flight_comes_back_when_the_connection_is_lost():
    """In order, once; the next connection begins without it."""
    known = nodes()
    make_ready(known, 1)
    for context in "abc":
        send(known, 1, context)
    assert [request.context for request in known.disconnected(1, 10)] == ["a", "b", "c"]
    assert known.in_flight(1) == 0
    make_ready(known, 1, 1000)
    assert known.disconnected(1, 1001) == []


def test_connecting_again_waits_ever_longer():
    """The pause doubles with each failure up to reconnect.backoff.max.ms, and a ready connection ends that."""
    known, now_ms, pauses = nodes(), 0, []
    for _ in range(7):
        known.connecting(1, now_ms)
        known.disconnected(1, now_ms)
        assert not known.can_connect(1, now_ms)
        pauses.append(known.delay_ms(1, now_ms))
        now_ms += pauses[-1]
        assert known.can_connect(1, now_ms)
    for pause_ms, ideal_ms in zip(pauses, [50, 100, 200, 400, 800, 1000, 1000], strict=True):
        assert 0.8 * ideal_ms - 1 <= pause_ms <= 1.2 * ideal_ms
    make_ready(known, 1, now_ms)
    known.disconnected(1, now_ms)
    assert known.delay_ms(1, now_ms) <= 60


def test_a_connection_has_ever_more_time_to_come_up():
    """socket.connection.setup.timeout.ms doubles with each failure to connect, until one succeeds."""
    known, now_ms, times = nodes(), 0, []
    for _ in range(4):
        known.connecting(1, now_ms)
        limit_ms = known.next_event_ms()
        times.append(limit_ms - now_ms)
        assert list(known.expired(limit_ms - 1)) == []
        assert [expired.node_id for expired in known.expired(limit_ms)] == [1]
        now_ms = limit_ms
        known.disconnected(1, now_ms)
    for time_ms, ideal_ms in zip(times, [2000, 4000, 8000, 8000], strict=True):
        assert 0.8 * ideal_ms - 1 <= time_ms <= 1.2 * ideal_ms
    known.connecting(1, now_ms)
    known.connected(1, now_ms)
    known.disconnected(1, now_ms)
    known.connecting(1, now_ms)
    assert known.next_event_ms() - now_ms <= 2400


def test_each_failure_to_connect_takes_the_next_address():
    """A host with two addresses of which one answers is reached; the one that answered is taken again."""
    known = nodes()
    assert known.connecting(1, 0) == 0
    known.disconnected(1, 0)
    assert known.connecting(1, 100) == 1
    known.connected(1, 100)
    known.disconnected(1, 100)
    assert known.connecting(1, 300) == 1


def test_an_overdue_response_ends_the_connection():
    """Whichever request it is: its late response would be taken for the next one's."""
    known = nodes()
    make_ready(known, 1)
    send(known, 1, deadline_ms=300)
    send(known, 1, deadline_ms=100)
    assert known.next_event_ms() == 100
    assert list(known.expired(99)) == []
    assert [expired.reason for expired in known.expired(100)] == ["no response in time"]


def test_an_idle_connection_is_closed():
    """After connections.max.idle.ms without a request; never while a response is awaited, nor if negative."""
    known = nodes()
    make_ready(known, 1)
    known.active(1, 500)
    assert known.next_event_ms() == 500 + MAX_IDLE_MS
    assert list(known.expired(499 + MAX_IDLE_MS)) == []
    assert [expired.node_id for expired in known.expired(500 + MAX_IDLE_MS)] == [1]
    send(known, 1, now_ms=500, deadline_ms=1_000_000)
    assert list(known.expired(500 + MAX_IDLE_MS)) == []
    endless = nodes(max_idle_ms=-1)
    make_ready(endless, 1)
    assert endless.next_event_ms() is None
    assert list(endless.expired(1 << 40)) == []


def test_a_throttled_node_is_left_alone():
    """Until the time it named; a lost connection forgets it."""
    known = nodes()
    make_ready(known, 1)
    known.throttled(1, 500)
    known.throttled(1, 200)
    assert not known.can_send(1, 499)
    assert known.delay_ms(1, 100) == 400
    assert known.can_send(1, 500)
    known.disconnected(1, 100)
    make_ready(known, 1, 200)
    assert known.can_send(1, 200)


@given(st.integers(0, 1 << 32))
def test_the_least_loaded_node(seed):
    """Ready and idle, else ready with the fewest in flight, else one that comes up, else the longest untried."""
    known = nodes(seed)
    assert known.least_loaded([], 0) is None
    assert known.least_loaded([1, 2, 3], 0) in (1, 2, 3)
    for node_id, now_ms in ((1, 10), (2, 5)):
        known.connecting(node_id, now_ms)
        known.disconnected(node_id, now_ms)
    assert known.least_loaded([1, 2], 20) is None
    assert known.least_loaded([1, 2], 1000) == 2
    known.connecting(3, 1000)
    assert known.least_loaded([1, 2, 3], 1000) == 3
    for node_id in (1, 2):
        make_ready(known, node_id, 1000)
        send(known, node_id)
    send(known, 2)
    assert known.least_loaded([1, 2, 3], 1000) == 1
    make_ready(known, 4, 1000)
    assert known.least_loaded([1, 2, 3, 4], 1000) == 4
    known.throttled(4, 2000)
    assert known.least_loaded([1, 2, 3, 4], 1000) == 1


class Connections(RuleBasedStateMachine):
    """Any order of events: every request comes back once, and what must end is announced in time."""

    def __init__(self) -> None:
        super().__init__()
        self.known = nodes()
        self.now_ms = 0
        self.model: dict[int, list[tuple[int, int]]] = {1: [], 2: []}
        self.sent = self.returned = 0

    @rule(step_ms=st.integers(0, 3000))
    def time_passes(self, step_ms):
        event_ms = self.known.next_event_ms()
        self.now_ms += step_ms
        due = [expired.node_id for expired in self.known.expired(self.now_ms)]
        assert bool(due) == (event_ms is not None and event_ms <= self.now_ms)
        for node_id in due:
            self.lose(node_id)

    @rule(node_id=st.sampled_from([1, 2]))
    def advance(self, node_id):
        state = self.known.state(node_id)
        if state is NodeState.DISCONNECTED and self.known.can_connect(node_id, self.now_ms):
            self.known.connecting(node_id, self.now_ms)
        elif state is NodeState.CONNECTING:
            self.known.connected(node_id, self.now_ms)
        elif state is NodeState.CHECKING_VERSIONS:
            self.known.ready(node_id, WINDOWS, self.now_ms)

    @rule(timeout_ms=st.integers(1, 5000))
    def request(self, timeout_ms):
        node_id = self.known.least_loaded([1, 2], self.now_ms)
        if node_id is not None and self.known.can_send(node_id, self.now_ms):
            self.sent += 1
            id_ = send(self.known, node_id, self.sent, now_ms=self.now_ms, deadline_ms=self.now_ms + timeout_ms)
            self.model[node_id].append((id_, self.sent))

    @rule(node_id=st.sampled_from([1, 2]))
    def respond(self, node_id):
        if self.model[node_id]:
            correlation_id, context = self.model[node_id].pop(0)
            assert self.known.received(node_id, correlation_id, self.now_ms).context == context
            self.returned += 1

    @precondition(lambda self: self.known.state(1) is not NodeState.DISCONNECTED)
    @rule()
    def lose_one(self):
        self.lose(1)

    def lose(self, node_id):
        lost = self.known.disconnected(node_id, self.now_ms)
        assert [request.context for request in lost] == [context for _, context in self.model[node_id]]
        self.model[node_id].clear()
        self.returned += len(lost)

    @invariant()
    def nothing_is_lost_or_too_much(self):
        in_flight = [self.known.in_flight(node_id) for node_id in (1, 2)]
        assert max(in_flight) <= MAX_IN_FLIGHT
        assert self.sent == self.returned + sum(in_flight)

    @invariant()
    def every_node_can_go_on(self):
        """Sendable now, after a known time, or waiting for an event that has a deadline."""
        for node_id in (1, 2):
            delay_ms = self.known.delay_ms(node_id, self.now_ms)
            if delay_ms is None:
                assert self.known.next_event_ms() is not None
            elif delay_ms == 0:
                assert self.known.can_send(node_id, self.now_ms) or self.known.can_connect(node_id, self.now_ms)


TestConnections = Connections.TestCase
