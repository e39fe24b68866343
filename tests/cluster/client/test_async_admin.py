"""AsyncAdmin against scripted brokers: whom it asks, what it asks again, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.client import AdminError, AsyncAdmin, NewTopic, UnsupportedVersion
from cluster.client.retried_calls import parse_address
from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import SystemClock
from cluster.seams.memory_transport import MemoryNetwork
from tests.cluster.client.fake_broker import FakeBroker, api_versions_response, metadata_response

CreateResponse = messages.response_class(ApiKey.CREATE_TOPICS)
OffsetsResponse = messages.response_class(ApiKey.LIST_OFFSETS)


class Cluster:
    """Brokers 1 to 3 on one network, which all give the same metadata. Broker 2 is the controller."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.brokers = {broker_id: FakeBroker() for broker_id in (1, 2, 3)}
        self.addresses: dict[int, tuple[str, int]] = {}
        self.topics: dict = {"t": [(1, [1, 2]), (3, [3, 1])]}
        self.controller_id = 2

    async def start(self) -> None:
        for broker_id, broker in self.brokers.items():
            listener = await self.network.transport(f"b{broker_id}").listen(f"b{broker_id}", 9092, broker.accept)
            self.addresses[broker_id] = (f"b{broker_id}", listener.port)
            broker.answers[ApiKey.METADATA] = self.metadata

    def metadata(self, request, header):
        wanted = self.topics if request.topics is None else [topic.name for topic in request.topics]
        topics = {name: self.topics.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in wanted}
        return metadata_response(self.addresses, topics, self.controller_id)


def run(body: Callable[[Cluster, AsyncAdmin], Awaitable[None]], *, timeout_ms: int = 5_000) -> None:
    async def main() -> None:
        cluster = Cluster()
        await cluster.start()
        admin = AsyncAdmin(
            ["b1:9092", "b9:9092"], cluster.network.transport("me"), SystemClock(), timeout_ms, request_timeout_ms=200
        )
        try:
            async with asyncio.timeout(20):
                await body(cluster, admin)
        finally:
            await admin.close()

    asyncio.run(main())


def test_metadata():
    """Brokers, controller and topics, in the greatest common version; unknown topics carry their error."""

    async def body(cluster, admin):
        view = await admin.metadata()
        assert (view.cluster_id, view.controller_id, sorted(view.brokers)) == ("c", 2, [1, 2, 3])
        assert view.brokers[3].host == "b3"
        partition = view.topics["t"].partitions[1]
        assert (partition.leader, partition.leader_epoch, partition.replicas, partition.isr) == (3, 3, (3, 1), (3, 1))
        unknown = await admin.metadata(["nope"])
        assert unknown.topics["nope"].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [version for key, version, _ in cluster.brokers[1].requests if key is ApiKey.METADATA] == [12, 12]

    run(body)


def test_the_deadline_ends_the_last_attempt():
    """Brokers that do not answer cost no more than the timeout of the call, whatever the requests may take."""

    async def body(cluster, admin):
        for broker in cluster.brokers.values():
            broker.answers[ApiKey.METADATA] = lambda request, header: None
        started = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError, match="Metadata: "):
            await admin.metadata()
        assert asyncio.get_running_loop().time() - started < 5

    run(body, timeout_ms=100)


def test_a_dead_bootstrap_broker_is_passed_over():
    """Any broker that answers will do, and one that was learned as well."""

    async def body(cluster, admin):
        await admin.metadata()
        cluster.brokers[1].connections[0].abort()
        cluster.brokers[1].answers[ApiKey.METADATA] = lambda request, header: None
        assert (await admin.metadata()).controller_id == 2
        assert cluster.brokers[2].seen(ApiKey.METADATA)

    run(body)


def test_describe_waits_for_leaders():
    """Unknown topics and partitions without a leader are asked for again."""

    async def body(cluster, admin):
        answers = iter([{}, {"t": [(-1, [1]), (1, [1])]}, {"t": [(2, [2]), (1, [1])]}])

        def change(request, header):
            cluster.topics = next(answers)
            return cluster.metadata(request, header)

        cluster.brokers[1].answers[ApiKey.METADATA] = change
        described = await admin.describe(["t"])
        assert described["t"].partitions[0].leader == 2

    run(body)


def test_describe_gives_up():
    """At the deadline it is a TimeoutError that says why."""

    async def body(cluster, admin):
        with pytest.raises(TimeoutError, match="nope is not ready"):
            await admin.describe(["nope"])

    run(body, timeout_ms=250)


def created(*codes: ErrorCode) -> Callable:
    """Answers to CreateTopics, one code after the other for every topic asked."""
    rest = iter(codes)

    def answer(request, header):
        code = next(rest)
        topics = [
            CreateResponse.CreatableTopicResult(name=topic.name, error_code=code, error_message="why")
            for topic in request.topics
        ]
        return CreateResponse(throttle_time_ms=0, topics=topics)

    return answer


def test_create_topics_asks_the_controller():
    """All that was said of the topic arrives."""

    async def body(cluster, admin):
        cluster.brokers[2].answers[ApiKey.CREATE_TOPICS] = created(ErrorCode.NONE)
        await admin.create_topics(
            [NewTopic("new", 3, 2, {"retention.ms": "-1"}), NewTopic("placed", assignment={0: [1, 2]})]
        )
        (request,) = cluster.brokers[2].seen(ApiKey.CREATE_TOPICS)
        plain, placed = request.topics
        assert (plain.name, plain.num_partitions, plain.replication_factor) == ("new", 3, 2)
        assert [(config.name, config.value) for config in plain.configs] == [("retention.ms", "-1")]
        assert (placed.num_partitions, placed.replication_factor) == (-1, -1)
        assert [(item.partition_index, item.broker_ids) for item in placed.assignments] == [(0, [1, 2])]

    run(body)


def test_create_topics_follows_a_moved_controller():
    """NOT_CONTROLLER is asked again, of whom metadata then names."""

    async def body(cluster, admin):
        def moved(request, header):
            cluster.controller_id = 3
            return created(ErrorCode.NOT_CONTROLLER)(request, header)

        cluster.brokers[2].answers[ApiKey.CREATE_TOPICS] = moved
        cluster.brokers[3].answers[ApiKey.CREATE_TOPICS] = created(ErrorCode.NONE)
        await admin.create_topics([NewTopic("new", 1, 1)])

    run(body)


def test_an_existing_topic_is_an_error():
    """Unless this call may have created it."""

    async def body(cluster, admin):
        cluster.brokers[2].answers[ApiKey.CREATE_TOPICS] = created(ErrorCode.TOPIC_ALREADY_EXISTS)
        with pytest.raises(AdminError, match="TOPIC_ALREADY_EXISTS") as raised:
            await admin.create_topics([NewTopic("new", 1, 1)])
        assert raised.value.error_code is ErrorCode.TOPIC_ALREADY_EXISTS

    run(body)


@pytest.mark.parametrize("first", ["no answer", "timed out"])
def test_a_topic_that_this_call_created_without_learning_of_it(first):
    """After a lost answer or a timeout of the controller, TOPIC_ALREADY_EXISTS is success."""

    async def body(cluster, admin):
        later = created(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS)
        silent = [first == "no answer"]

        def answer(request, header):
            if silent.pop() if silent else False:
                return None
            return later(request, header)

        if first == "no answer":
            later = created(ErrorCode.TOPIC_ALREADY_EXISTS)
        cluster.brokers[2].answers[ApiKey.CREATE_TOPICS] = answer
        await admin.create_topics([NewTopic("new", 1, 1)])
        assert len(cluster.brokers[2].seen(ApiKey.CREATE_TOPICS)) == 2

    run(body)


def offsets(values: dict[tuple[str, int], int | ErrorCode]) -> Callable:
    """Answers to ListOffsets by partition."""

    def answer(request, header):
        topics = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                value = values[topic.name, entry.partition_index]
                failed = isinstance(value, ErrorCode)
                results.append(
                    OffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
                        partition_index=entry.partition_index,
                        error_code=value if failed else ErrorCode.NONE,
                        timestamp=-1,
                        offset=-1 if failed else value,
                        leader_epoch=4,
                    )
                )
            topics.append(OffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=results))
        return OffsetsResponse(throttle_time_ms=0, topics=topics)

    return answer


def test_list_offsets_asks_the_leaders():
    """Each leader for its partitions; what was not the leader any more is asked again."""

    async def body(cluster, admin):
        cluster.brokers[1].answers[ApiKey.LIST_OFFSETS] = offsets({("t", 0): 10})
        answers = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER, 20])
        cluster.brokers[3].answers[ApiKey.LIST_OFFSETS] = lambda *arguments: offsets({("t", 1): next(answers)})(
            *arguments
        )
        listed = await admin.list_offsets({("t", 0): -1, ("t", 1): -2})
        assert {key: value.offset for key, value in listed.items()} == {("t", 0): 10, ("t", 1): 20}
        assert listed["t", 0].leader_epoch == 4
        assert len(cluster.brokers[1].seen(ApiKey.LIST_OFFSETS)) == 1
        (first, _) = cluster.brokers[3].seen(ApiKey.LIST_OFFSETS)
        assert (first.replica_id, first.topics[0].partitions[0].timestamp) == (-1, -2)

    run(body)


def test_list_offsets_that_cannot_be():
    """A code that waiting does not change is an AdminError; a partition without leader a TimeoutError."""

    async def body(cluster, admin):
        cluster.brokers[1].answers[ApiKey.LIST_OFFSETS] = offsets({("t", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED})
        with pytest.raises(AdminError, match="t-0"):
            await admin.list_offsets({("t", 0): -1})
        with pytest.raises(TimeoutError, match="no leader"):
            await admin.list_offsets({("t", 7): -1})

    run(body, timeout_ms=300)


def test_end_offsets_of_all_replicas():
    """Every replica is asked, as debugging replica; all or none."""

    async def body(cluster, admin):
        for broker_id, broker in cluster.brokers.items():
            broker.answers[ApiKey.LIST_OFFSETS] = offsets({("t", 0): 10 + broker_id, ("t", 1): 20 + broker_id})
        ends = await admin.replica_end_offsets([("t", 0), ("t", 1)])
        assert ends == {("t", 0): {1: 11, 2: 12}, ("t", 1): {3: 23, 1: 21}}
        assert cluster.brokers[2].seen(ApiKey.LIST_OFFSETS)[0].replica_id == -2
        cluster.brokers[2].answers[ApiKey.LIST_OFFSETS] = offsets({("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER})
        with pytest.raises(TimeoutError, match="t-0 on broker 2"):
            await admin.replica_end_offsets([("t", 0)])

    run(body, timeout_ms=300)


def test_groups_have_the_types_that_kafkas_tools_name():
    """As brokers write them, but capitalized; none of a broker that is too old to tell, which is asked without."""
    Response = messages.response_class(ApiKey.LIST_GROUPS)

    def groups(*listed: tuple[str, str]):
        made = [Response.ListedGroup(name, "consumer", "Stable", kind) for name, kind in listed]
        return lambda *_: Response(0, 0, made)

    async def body(cluster, admin):
        cluster.brokers[1].answers[ApiKey.LIST_GROUPS] = groups(("a", "classic"), ("b", "consumer"))
        cluster.brokers[2].answers[ApiKey.LIST_GROUPS] = groups()
        cluster.brokers[3].answers[ApiKey.LIST_GROUPS] = groups(("c", ""))
        cluster.brokers[3].windows = {**SUPPORTED, ApiKey.LIST_GROUPS: (0, 4)}
        listed = await admin.list_groups()
        assert [(each.group_id, each.group_type) for each in listed] == [("a", "Classic"), ("b", "Consumer"), ("c", "")]
        assert {(each.protocol_type, each.state) for each in listed} == {("consumer", "Stable")}

    run(body)


def test_api_versions_of_an_older_broker():
    """Version 3 is refused in version 0, and asked again in what the broker knows."""

    async def body(cluster, admin):
        windows = {**SUPPORTED, ApiKey.API_VERSIONS: (0, 1), ApiKey.METADATA: (0, 5)}
        cluster.brokers[1].windows = windows
        assert await admin.api_versions("b1:9092") == windows
        await admin.metadata()
        assert [(key, version) for key, version, _ in cluster.brokers[1].requests] == [
            (ApiKey.API_VERSIONS, 1),
            (ApiKey.METADATA, 5),
        ]

    run(body)


@pytest.mark.parametrize("windows", [{ApiKey.API_VERSIONS: (0, 3)}, {**SUPPORTED, ApiKey.METADATA: (13, 14)}])
def test_no_version_in_common(windows):
    """An API that the broker lacks, or that it speaks only newer, is not asked again."""

    async def body(cluster, admin):
        cluster.brokers[1].windows = windows
        with pytest.raises(UnsupportedVersion, match="METADATA"):
            await admin.metadata()

    run(body)


def test_api_versions_refused_for_another_reason():
    """Any error of ApiVersions but UNSUPPORTED_VERSION is final."""

    async def body(cluster, admin):
        cluster.brokers[1].answers[ApiKey.API_VERSIONS] = lambda request, header: api_versions_response(
            {}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        with pytest.raises(UnsupportedVersion, match="CLUSTER_AUTHORIZATION_FAILED"):
            await admin.api_versions("b1:9092")

    run(body)


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:9092", ("localhost", 9092)), ("[::1]:19092", ("::1", 19092)), ("10.0.0.1:1", ("10.0.0.1", 1))],
)
def test_addresses(text, address):
    """Host and port; an IPv6 host in brackets."""
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", ":9092", "host:port", "host:-1", "PLAINTEXT://host:1", "a:1 b:1", "a:1;b:1", "a b:1", "[]:1"],
)
def test_what_is_no_address(text):
    """An address without host or port is refused with its text."""
    with pytest.raises(ValueError, match="not a host:port address"):
        parse_address(text)


@pytest.mark.parametrize("port", [0, 65536, 99999])
def test_what_is_no_port(port):
    """Nothing listens there: it would look like a broker that is down."""
    with pytest.raises(ValueError, match="no port between 1 and 65535"):
        parse_address(f"host:{port}")
