"""NetworkClient over a scripted selector: the steps of a connection, matching, deadlines, endings."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import BrokerAddress
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse, LostConnection, Polled
from cluster.client.network import NetworkClient
from cluster.client.nodes import Nodes, NodeState
from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode, MalformedRequest
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.cluster.client.fake_broker import api_versions_response
from tests.cluster.client.scripted_selector import ScriptedSelector

InitRequest = messages.request_class(ApiKey.INIT_PRODUCER_ID)
InitResponse = messages.response_class(ApiKey.INIT_PRODUCER_ID)
BROKER = BrokerAddress(1, "b1", 9092)
REQUEST_TIMEOUT_MS = 3_000
NOTHING = Polled([], [], [])


def init(number: int = 0):
    """A request that carries a number, to be answered with it."""
    return InitRequest(transactional_id=None, transaction_timeout_ms=number)


def answer_number(request, header):
    return InitResponse(producer_id=request.transaction_timeout_ms, error_code=0)


class Setting:
    """A network client, its clock, and its selector."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.selector = ScriptedSelector(self.clock)
        random = Random(3)
        nodes = Nodes(
            reconnect=ExponentialBackoff(50, 50, random),
            setup_timeout=ExponentialBackoff(1_000, 1_000, random),
            max_in_flight=5,
            max_idle_ms=60_000,
            random=random,
        )
        self.client = NetworkClient(
            self.selector, nodes, self.clock, client_id="me", request_timeout_ms=REQUEST_TIMEOUT_MS
        )

    def make_ready(self) -> None:
        """Connect to the broker, and learn its versions."""
        assert not self.client.ready(BROKER)
        assert self.client.poll(1_000) == NOTHING
        assert self.client.poll(1_000) == Polled([], [1], [])
        assert self.client.ready(BROKER)


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.fixture
def ready(setting) -> Setting:
    setting.make_ready()
    return setting


def test_a_connection_becomes_ready_when_the_versions_are_known(setting):
    """Connect, ask for the versions under our name, and only then take requests."""
    setting.make_ready()
    assert setting.selector.connects == [(1, "b1", 9092, 0)]
    node_id, header, request = setting.selector.requests[0]
    assert (node_id, header.api_key, header.api_version, header.client_id) == (1, ApiKey.API_VERSIONS, 3, "me")
    assert request.client_software_name == "gapless"
    assert setting.client.nodes.version(1, ApiKey.PRODUCE) == SUPPORTED[ApiKey.PRODUCE][1]


def test_nothing_is_sent_before(setting):
    """A request to a node that is not ready is refused, and says how it stands."""
    with pytest.raises(ConnectionError, match="node 1 takes no request now: it is disconnected"):
        setting.client.send(1, ApiKey.PRODUCE, 7, [b""], bytes, "x")
    with pytest.raises(UnsupportedVersion, match="node 1 has not told"):
        setting.client.send_message(1, init(), "x")
    setting.client.ready(BROKER)
    setting.client.ready(BROKER)
    assert len(setting.selector.connects) == 1


def test_an_old_broker_is_asked_again_in_its_version(setting):
    """It answers a version that it does not know with its own, and with that it gets on."""
    setting.selector.windows[ApiKey.API_VERSIONS] = (0, 1)
    setting.client.ready(BROKER)
    while not (polled := setting.client.poll(1_000)).ready:
        assert polled == NOTHING
    assert [header.api_version for _, header, _ in setting.selector.requests] == [3, 1]


def test_a_broker_whose_refusal_is_garbled_is_asked_in_version_0(setting):
    """librdkafka's mock cluster says that it does not know the version, and the rest in no layout; and its messages may
    have bytes after them."""
    setting.selector.answers[ApiKey.API_VERSIONS] = lambda request, header: api_versions_response(SUPPORTED)
    garbled = bytes.fromhex("00000000 0023 01 0012 0000 0002 00000000")

    def respond(number: int, response: object) -> None:
        if number == 0:
            setting.selector.frame(1, garbled)
        else:
            _node, header, _request = setting.selector.requests[number]
            frame = messages.encode_response(header.api_key, header.api_version, header.correlation_id, response)
            setting.selector.frame(1, frame + bytes(1))

    setting.selector.respond = respond
    assert not setting.client.ready(BROKER)
    while not setting.client.ready(BROKER):
        assert setting.client.poll(1_000).lost == []
    assert [header.api_version for _node, header, _request in setting.selector.requests] == [3, 0]


def test_a_broker_without_common_versions(setting):
    """Its connection is given up, with the reason, and tried again after the pause."""
    setting.selector.answers[ApiKey.API_VERSIONS] = lambda request, header: api_versions_response(
        {}, ErrorCode.UNSUPPORTED_VERSION if header.api_version == 0 else ErrorCode.UNKNOWN_SERVER_ERROR
    )
    setting.client.ready(BROKER)
    setting.client.poll(1_000)
    polled = setting.client.poll(1_000)
    assert polled.lost == [LostConnection(1, "UNSUPPORTED_VERSION: ApiVersions 3: UNKNOWN_SERVER_ERROR", False)]
    assert setting.selector.open == set()
    assert setting.client.delay_ms(1) == 50


def test_responses_come_in_order_with_their_contexts(ready):
    """Pipelined requests, each with its own answer; more than fit in flight are refused."""
    for number in range(5):
        ready.client.send_message(1, init(number), f"context {number}")
    assert not ready.client.ready(BROKER)
    with pytest.raises(ConnectionError):
        ready.client.send_message(1, init(), "too many")
    for number in range(5):
        ready.selector.respond(number + 1, answer_number(ready.selector.requests[number + 1][2], None))
    polled = ready.client.poll(1_000)
    assert [(response.context, response.answer.producer_id) for response in polled.responses] == [
        (f"context {number}", number) for number in range(5)
    ]
    assert all(response.failure is None and not response.is_timeout for response in polled.responses)


def test_a_body_of_the_callers_own(ready):
    """Parts are sent as they are behind a header of ours; the answer is made of the frame."""
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"ab", memoryview(b"cd")], lambda frame: bytes(frame[4:]), "context")
    _, header, body = ready.selector.requests[-1]
    assert (header.api_version, header.client_id, body) == (7, "me", b"abcd")
    ready.selector.frame(1, struct.pack(">i", header.correlation_id) + b"answer")
    assert ready.client.poll(1_000) == Polled([ClientResponse(1, "context", b"answer")], [], [])


def test_a_lost_connection_fails_what_was_in_flight(ready):
    """In order, each once, before the loss itself; the next connection waits for the pause."""
    for number in range(3):
        ready.client.send_message(1, init(), number)
    ready.selector.close_by_peer(1, "reset")
    polled = ready.client.poll(1_000)
    assert polled.responses == [ClientResponse(1, number, None, "reset") for number in range(3)]
    assert polled.lost == [LostConnection(1, "reset", True)]
    assert not ready.client.ready(BROKER)
    assert len(ready.selector.connects) == 1
    ready.clock.advance_ms(50)
    ready.make_ready()
    assert len(ready.selector.connects) == 2


def test_an_overdue_response_closes_the_connection(ready):
    """The overdue request is a timeout, the younger ones are lost with their connection; poll wakes up for it."""
    ready.client.send_message(1, init(), "old")
    ready.clock.advance_ms(1_000)
    ready.client.send_message(1, init(), "young")
    polled = ready.client.poll(60_000)
    assert ready.selector.timeouts[-1] == REQUEST_TIMEOUT_MS - 1_000
    assert [(response.context, response.is_timeout) for response in polled.responses] == [
        ("old", True),
        ("young", False),
    ]
    assert {response.failure for response in polled.responses} == {"no response in time"}
    assert ready.selector.open == set()
    assert ready.client.nodes.state(1) is NodeState.DISCONNECTED


def test_a_request_with_a_timeout_of_its_own(ready):
    """It counts instead of request.timeout.ms."""
    ready.client.send_message(1, init(), "x", timeout_ms=100)
    assert ready.client.poll(None).responses[0].is_timeout
    assert ready.selector.timeouts[-1] == 100


def test_versions_that_are_never_told(setting):
    """A node that connects and is silent is given up after request.timeout.ms; nobody gets a response for that."""
    setting.client.ready(BROKER)
    setting.client.poll(0)
    setting.selector.events.clear()
    assert setting.client.poll(60_000) == Polled([], [], [LostConnection(1, "no response in time", False)])


def test_a_connection_that_does_not_come_up(setting):
    """Refused, unknown or silent: it is told once, with the reason."""
    setting.selector.refused.add(1)
    setting.client.ready(BROKER)
    assert setting.client.poll(1_000).lost == [LostConnection(1, "Connection refused", False)]
    setting.selector.unknown_hosts.add("b1")
    setting.clock.advance_ms(50)
    setting.client.ready(BROKER)
    assert setting.client.poll(1_000).lost == [LostConnection(1, "b1:9092: b1 is unknown", False)]
    assert setting.selector.timeouts[-1] == 0
    setting.selector.refused.clear()
    setting.selector.unknown_hosts.clear()
    setting.selector.silent.add(1)
    setting.clock.advance_ms(50)
    setting.client.ready(BROKER)
    assert setting.client.poll(60_000).lost == [LostConnection(1, "not connected within 1000 ms", False)]
    assert [address_index for *_, address_index in setting.selector.connects] == [0, 1, 2]


def test_a_connection_that_is_given_up_from_here(ready):
    """Like one that is lost, at once; where there is none nothing happens."""
    ready.client.send_message(1, init(), "x")
    ready.client.disconnect(1, "too slow")
    ready.client.disconnect(1, "too slow")
    ready.client.disconnect(2, "never met")
    assert ready.selector.open == set()
    expected = Polled([ClientResponse(1, "x", None, "too slow")], [], [LostConnection(1, "too slow", True)])
    assert ready.client.poll(60_000) == expected
    assert ready.selector.timeouts[-1] == 0


def test_an_idle_connection_is_closed(ready):
    """After connections.max.idle.ms, and nobody has waited for anything."""
    assert ready.client.poll(None) == Polled([], [], [LostConnection(1, "idle for 60000 ms", True)])


@pytest.mark.parametrize(
    "payload",
    [b"", b"\0\0", struct.pack(">i", 99) + b"\0" * 30, struct.pack(">i", 1) + b"\0\0"],
    ids=["empty", "half a header", "another request's", "half a body"],
)
def test_an_unreadable_response_closes_the_connection(ready, payload):
    """What it answered, and all that waited behind it, fails with the reason."""
    ready.client.send_message(1, init(), "first")
    ready.client.send_message(1, init(), "second")
    ready.selector.frame(1, payload)
    polled = ready.client.poll(1_000)
    assert [response.context for response in polled.responses] == ["first", "second"]
    assert all(response.failure.startswith("unreadable response: ") for response in polled.responses)
    assert len(polled.lost) == 1
    assert ready.selector.open == set()


def test_a_response_that_nobody_asked_for(ready):
    """A response while nothing is in flight closes the connection."""
    ready.selector.frame(1, struct.pack(">i", 1))
    assert ready.client.poll(0).lost == [
        LostConnection(1, "unreadable response: response 1 while nothing is in flight", True)
    ]


def test_a_decoder_of_the_callers_own_may_refuse(ready):
    """With a ProtocolError, as one of ours does."""

    def refuse(frame):
        raise MalformedRequest("no")

    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], refuse, "context")
    ready.selector.frame(1, struct.pack(">i", ready.selector.requests[-1][1].correlation_id))
    assert ready.client.poll(0).responses == [ClientResponse(1, "context", None, "unreadable response: no")]


def test_a_request_without_response(ready):
    """It is done when the kernel took it; nothing else is sent while it waits for that."""
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "quick", expects_response=False)
    assert ready.client.poll(1_000).responses == [ClientResponse(1, "quick", None)]
    assert ready.selector.timeouts[-1] == 0
    ready.selector.full.add(1)
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "kept", expects_response=False)
    assert not ready.client.can_send(1)
    ready.selector.drain(1)
    assert ready.client.poll(1_000).responses == [ClientResponse(1, "kept", None)]
    assert ready.client.can_send(1)


def test_a_full_socket_is_waited_for_and_not_asked_again_and_again(ready):
    """Its writability ends the poll; a delay of 0 would let the thread spin until then."""
    ready.selector.full.add(1)
    ready.client.send_message(1, init(), "waits")
    assert not ready.client.can_send(1)
    assert ready.client.delay_ms(1) is None
    ready.selector.drain(1)
    ready.client.poll(1_000)
    assert ready.client.delay_ms(1) == 0


def test_a_socket_with_room_again_takes_nothing_until_the_poll_that_tells(ready):
    """Else a second request without response would take the place of the first, which would never come back."""
    ready.selector.full.add(1)
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "kept", expects_response=False)
    ready.selector.drain(1)
    with pytest.raises(ConnectionError, match="node 1 takes no request now"):
        ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "more", expects_response=False)
    assert ready.client.poll(1_000).responses == [ClientResponse(1, "kept", None)]
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "more", expects_response=False)
    assert ready.client.poll(1_000).responses == [ClientResponse(1, "more", None)]


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_request_without_response_that_is_never_sent(ready, is_lost):
    """It fails with its connection, which is given up after request.timeout.ms."""
    ready.selector.full.add(1)
    ready.client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, "kept", expects_response=False)
    if is_lost:
        ready.selector.close_by_peer(1, "reset")
    expected = ClientResponse(1, "kept", None, "reset" if is_lost else "not sent in time", not is_lost)
    assert ready.client.poll(60_000).responses == [expected]


def test_a_throttled_node_is_left_alone(ready):
    """For as long as the answer says, in versions where the client is to wait and not the broker."""

    def throttled(request, header):
        return InitResponse(producer_id=1, error_code=0, throttle_time_ms=500)

    ready.selector.answers[ApiKey.INIT_PRODUCER_ID] = throttled
    ready.client.send_message(1, init(), "x")
    ready.client.poll(0)
    assert not ready.client.ready(BROKER)
    assert ready.client.delay_ms(1) == 500
    ready.clock.advance_ms(500)
    assert ready.client.ready(BROKER)


def test_in_old_versions_the_broker_has_throttled_already(setting):
    """InitProducerId 0: the answer came late, and nothing more is to be waited for."""
    setting.selector.windows[ApiKey.INIT_PRODUCER_ID] = (0, 0)
    setting.make_ready()
    setting.selector.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: InitResponse(throttle_time_ms=500)
    setting.client.send_message(1, init(), "x")
    setting.client.poll(0)
    assert setting.client.ready(BROKER)


@given(st.integers(0, 1 << 32))
@example(733)
def test_every_request_comes_back_once(seed):
    """Whatever answers, is lost, refuses, is silent, full or babbles: each request gets one response."""
    random, setting = Random(seed), Setting()
    client, selector = setting.client, setting.selector
    sent, returned, unanswered = 0, [], []

    def poll(timeout_ms):
        polled = client.poll(timeout_ms)
        returned.extend(response.context for response in polled.responses)
        if polled.lost:
            unanswered.clear()

    for _ in range(80):
        step = random.choice(
            ["send"] * 4 + ["answer"] * 4 + ["poll"] * 3 + ["lose", "refuse", "babble", "full", "drain"]
        )
        if step == "send" and client.ready(BROKER):
            if expects_response := random.random() < 0.7:
                unanswered.append(len(selector.requests))
            client.send(1, ApiKey.PRODUCE, 7, [b"x"], bytes, sent, expects_response=expects_response)
            sent += 1
        elif step == "answer" and unanswered and 1 in selector.open:
            header = selector.requests[unanswered.pop(0)][1]
            selector.frame(1, struct.pack(">i", header.correlation_id))
        elif step == "poll":
            poll(random.choice([0, 0, 10, 5_000]))
        elif step == "refuse":
            selector.refused ^= {1}
        elif step == "drain" and 1 in selector.full and 1 in selector.open:
            selector.drain(1)
        elif step == "full" and 1 in selector.open:
            selector.full.add(1)
        elif step in ("lose", "babble") and 1 in selector.open and client.nodes.state(1) is not NodeState.CONNECTING:
            selector.full.discard(1)
            poll(0)
            if 1 in selector.open:
                if step == "lose":
                    selector.close_by_peer(1)
                else:
                    selector.frame(1, b"babble")
            poll(0)
    # Nobody answers any more, and a socket that is full stays so.
    poll(REQUEST_TIMEOUT_MS)
    poll(REQUEST_TIMEOUT_MS)
    poll(0)
    assert sorted(returned) == list(range(sent))


def test_wakeup_and_close(ready):
    """wakeup and close are passed on to the selector."""
    ready.client.wakeup()
    assert ready.selector.wakeups == 1
    ready.client.close()
    assert ready.selector.is_shut_down
