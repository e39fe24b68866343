"""MetadataUpdater: whom it asks, that it asks once, and what follows from failures; on a clock that is moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.client.cluster_view import BrokerAddress
from cluster.client.exchange import ClientResponse
from cluster.client.wiring import client_io
from cluster.config.errors import ConfigError
from cluster.config.producer import validate
from cluster.protocol import messages
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.cluster.client.fake_broker import metadata_response
from tests.cluster.client.scripted_selector import ScriptedSelector

InitRequest = messages.request_class(ApiKey.INIT_PRODUCER_ID)
InitResponse = messages.response_class(ApiKey.INIT_PRODUCER_ID)
TOPICS = {"t": [(1, [1, 2]), (2, [2, 1])], "u": [(2, [2])]}


class Setting:
    """A client's I/O against a cluster of nodes 1 and 2, with two bootstrap addresses."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.selector = ScriptedSelector(self.clock)
        self.brokers = {1: ("b1", 1), 2: ("b2", 2)}
        self.topics: dict = dict(TOPICS)
        self.selector.answers[ApiKey.METADATA] = self.answer
        config = validate({"bootstrap.servers": "one:9092,two:9092", "client.id": "me"})
        self.metadata, self.network, self.updater = client_io(
            config, self.selector, self.clock, Random(5), max_in_flight=5, max_idle_topic_ms=60_000
        )

    def answer(self, request, header):
        topics = {
            topic.name: self.topics.get(topic.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for topic in request.topics
        }
        return metadata_response(self.brokers, topics, 1)

    def until(self, condition: Callable[[], bool]) -> list[ClientResponse]:
        """What the thread of a client does; returns the responses that were not for the updater."""
        others = []
        for _ in range(1000):
            delay_ms = self.updater.maybe_update()
            if condition():
                return others
            others += self.updater.absorb(self.network.poll(delay_ms))
        raise AssertionError(f"it did not come to that: {self.updater!r}")

    def until_version(self, version: int) -> None:
        self.until(lambda: self.metadata.version >= version)

    def asked(self) -> list[tuple[int, list[str]]]:
        """Who was asked for which topics."""
        return [
            (node_id, [topic.name for topic in request.topics])
            for node_id, header, request in self.selector.requests
            if header.api_key == ApiKey.METADATA
        ]


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_the_first_question(setting):
    """A bootstrap broker is asked for the topics in use, and the cluster is known."""
    setting.metadata.use("t", 0)
    setting.until_version(1)
    ((node_id, topics),) = setting.asked()
    assert (node_id in (-1, -2), topics) == (True, ["t"])
    assert setting.metadata.view.brokers == {1: BrokerAddress(1, "b1", 1), 2: BrokerAddress(2, "b2", 2)}
    assert setting.metadata.leader_of("t", 1) == BrokerAddress(2, "b2", 2)
    assert setting.updater.maybe_update() == 300_000


def test_a_topic_that_comes_into_use_is_asked_for_at_once(setting):
    """Alone, of a broker of the cluster."""
    setting.metadata.use("t", 0)
    setting.until_version(1)
    setting.metadata.use("u", setting.clock.monotonic_ms())
    setting.until_version(2)
    assert setting.asked()[1][0] > 0
    assert setting.asked()[1][1] == ["u"]
    assert set(setting.metadata.view.topics) == {"t", "u"}


def test_one_question_at_a_time(setting):
    """While an answer is awaited nothing more is asked, whatever is requested."""
    del setting.selector.answers[ApiKey.METADATA]
    setting.until(lambda: len(setting.asked()) == 1)
    setting.metadata.request_update()
    assert setting.updater.maybe_update() is None
    assert len(setting.asked()) == 1
    number = len(setting.selector.requests) - 1
    setting.selector.respond(number, setting.answer(setting.selector.requests[number][2], None))
    setting.until_version(1)


def test_a_node_whose_socket_is_full_is_not_asked(setting):
    """What expects no response is not in flight; but the question would wait behind it, however long. If there is no
    other node, it is asked when its socket has room again.
    """
    setting.until_version(1)
    for node_id in (1, 2):
        broker = setting.metadata.view.brokers[node_id]
        while not setting.network.ready(broker):
            setting.network.poll(0)
    setting.selector.full.add(1)
    setting.network.send(1, ApiKey.PRODUCE, 9, [b""], bytes, "context", expects_response=False)
    for version in range(2, 10):
        setting.metadata.request_update()
        setting.until_version(version)
    assert {node_id for node_id, _ in setting.asked()[1:]} == {2}
    setting.brokers = {1: ("b1", 1)}
    setting.metadata.request_update()
    setting.until_version(10)
    setting.metadata.request_update()
    count = len(setting.asked())
    setting.clock.advance_ms(10_000)
    assert (setting.updater.maybe_update(), len(setting.asked())) == (None, count)
    setting.selector.drain(1)
    setting.until_version(11)
    assert setting.asked()[-1][0] == 1


@pytest.mark.parametrize("how", ["lost", "silent"])
def test_an_unanswered_question_is_asked_again(setting, how):
    """After the pause of retry.backoff.ms, when the connection is lost or request.timeout.ms has passed."""
    del setting.selector.answers[ApiKey.METADATA]
    setting.until(lambda: len(setting.asked()) == 1)
    asked_ms = setting.clock.monotonic_ms()
    if how == "lost":
        setting.selector.close_by_peer(setting.asked()[0][0])
    setting.until(lambda: len(setting.asked()) == 2)
    waited_ms = setting.clock.monotonic_ms() - asked_ms - (30_000 if how == "silent" else 0)
    assert 80 <= waited_ms <= 400
    setting.selector.answers[ApiKey.METADATA] = setting.answer
    setting.selector.close_by_peer(setting.asked()[1][0])
    setting.until_version(1)


def test_a_bootstrap_broker_that_is_down(setting, caplog):
    """It is named in a warning, and another one is asked; while none answers attempts are few."""
    setting.selector.refused.update((-1, -2))
    setting.until(lambda: len(setting.selector.connects) >= 12)
    assert {node_id for node_id, *_ in setting.selector.connects} == {-1, -2}
    assert setting.clock.monotonic_ms() >= 6_000
    assert "bootstrap broker one:9092 cannot be reached: Connection refused" in caplog.text
    setting.selector.refused.remove(-2)
    setting.until_version(1)
    assert setting.asked()[0][0] == -2


def test_when_all_known_brokers_are_gone_the_bootstrap_is_asked_again(setting):
    """The cluster has moved to other addresses, which its bootstrap address knows."""
    setting.metadata.use("t", 0)
    setting.until_version(1)
    setting.selector.refused.update((1, 2))
    setting.brokers = {3: ("b3", 3)}
    setting.topics = {"t": [(3, [3]), (3, [3])]}
    for node_id in list(setting.selector.open):
        setting.selector.close_by_peer(node_id)
    setting.metadata.request_update()
    setting.until_version(2)
    assert setting.asked()[-1][0] < 0
    assert setting.metadata.leader_of("t", 0) == BrokerAddress(3, "b3", 3)


def test_a_lost_connection_asks_for_an_update(setting):
    """The broker may have died, and its partitions have other leaders."""
    setting.metadata.use("t", 0)
    setting.until_version(1)
    setting.network.ready(setting.metadata.view.brokers[1])
    setting.until(lambda: setting.network.can_send(1))
    setting.topics["t"] = [(2, [2]), (2, [2])]
    setting.selector.close_by_peer(1)
    setting.until_version(2)
    assert setting.metadata.leader_of("t", 0) == BrokerAddress(2, "b2", 2)


def test_responses_of_others_are_passed_on(setting):
    """Responses to the client's requests reach it; those to metadata requests do not."""
    setting.until_version(1)
    setting.network.ready(setting.metadata.view.brokers[1])
    setting.until(lambda: setting.network.can_send(1))
    setting.selector.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, header: InitResponse(producer_id=7)
    setting.metadata.request_update()
    setting.network.send_message(1, InitRequest(), "mine")
    others = setting.until(lambda: setting.metadata.version == 2)
    assert [(response.context, response.answer.producer_id) for response in others] == [("mine", 7)]


def test_a_node_that_does_not_serve_metadata(setting, caplog):
    """It is no broker: that is said, and the question is put off."""
    del setting.selector.windows[ApiKey.METADATA]
    setting.until(lambda: setting.updater.maybe_update() not in (None, 0))
    assert "cannot be asked for metadata: UNSUPPORTED_VERSION" in caplog.text


@pytest.mark.parametrize(
    ("servers", "complaint"),
    [
        ("", "producer config 'bootstrap.servers' is empty: give host:port of at least one broker"),
        ("one", "producer config 'bootstrap.servers': not a host:port address: 'one'"),
    ],
)
def test_bootstrap_servers_that_are_none(servers, complaint):
    """Unusable bootstrap.servers are refused in one line that says what is wrong."""
    clock = ManualClock()
    config = validate({"bootstrap.servers": servers})
    with pytest.raises(ConfigError, match=complaint):
        client_io(config, ScriptedSelector(clock), clock, Random(1), max_in_flight=5, max_idle_topic_ms=None)
