"""What the controller tells a broker: who is believed, and what a partition refuses (Kafka's ReplicaManager)."""

from __future__ import annotations

import asyncio
import errno
from typing import Any
from uuid import UUID, uuid4

import pytest

from cluster.broker.node import Node
from cluster.broker.replicas.assignments import ReplicaAssignment, Role
from cluster.broker.replicas.follower_log import FollowerLog
from cluster.log.local_log import LocalLog
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

LEADER_AND_ISR = request_class(ApiKey.LEADER_AND_ISR)
STOP_REPLICA = request_class(ApiKey.STOP_REPLICA)
UPDATE_METADATA = request_class(ApiKey.UPDATE_METADATA)


def from_controller(node: Node, **fields: Any) -> dict[str, Any]:
    """The fencing fields of a controller that is newer than any, for this life of the broker."""
    return {"controller_id": 1, "controller_epoch": 1000, "broker_epoch": node.control.broker_epoch, **fields}


def leader_and_isr(node: Node, leader_epoch: int, **fields: Any) -> Any:
    """That broker 1 leads the topic, alone."""
    topic_id = fields.pop("topic_id", None)
    if topic_id is None:
        found = node.metadata.topic(TOPIC)
        topic_id = found.topic_id if found is not None else UUID(int=7)
    state = {
        "partition_index": 0, "controller_epoch": 1000, "leader": 1, "leader_epoch": leader_epoch, "isr": [1],
        "partition_epoch": 100, "replicas": [1], "adding_replicas": [], "removing_replicas": [],
    }  # fmt: skip
    state |= {key: fields.pop(key) for key in list(fields) if key in state and key != "controller_epoch"}
    topic = LEADER_AND_ISR.LeaderAndIsrTopicState
    return LEADER_AND_ISR(
        topic_states=[
            topic(
                topic_name=fields.pop("topic", TOPIC),
                topic_id=topic_id,
                partition_states=[topic.LeaderAndIsrPartitionState(**state)],
            )
        ],
        live_leaders=[],
        type=1,
        **from_controller(node, **fields),
    )


def code_of(response: Any) -> tuple[int, int | None]:
    """(top level, the partition's)."""
    codes = [each.error_code for topic in response.topics for each in topic.partition_errors]
    return response.error_code, codes[0] if codes else None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"controller_epoch": 0}, (ErrorCode.STALE_CONTROLLER_EPOCH, None)),
        ({"broker_epoch": 1}, (ErrorCode.STALE_BROKER_EPOCH, None)),
        ({"broker_epoch": -1}, (ErrorCode.STALE_BROKER_EPOCH, None)),
        ({"controller_id": -1}, (ErrorCode.INVALID_REQUEST, None)),
        ({"topic": "../../elsewhere"}, (ErrorCode.INVALID_REQUEST, None)),
        ({"partition_index": -1}, (ErrorCode.INVALID_REQUEST, None)),
        ({"replicas": [1, -2]}, (ErrorCode.INVALID_REQUEST, None)),
        ({"leader_epoch": -1}, (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH)),
        ({"replicas": [2, 3]}, (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        ({"topic_id": uuid4()}, (ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID)),
        ({}, (ErrorCode.NONE, ErrorCode.NONE)),
    ],
    ids=[
        "old controller",
        "former life",
        "no broker epoch",
        "no controller",
        "a path for a topic",
        "no partition",
        "no broker",
        "old leader epoch",
        "not a replica",
        "another topic",
        "good",
    ],
)
def test_leader_and_isr_is_fenced(fields: dict[str, Any], expected: tuple[int, int | None]) -> None:
    """By controller epoch, broker epoch, leader epoch, assignment and topic id."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        request = leader_and_isr(node, **{"leader_epoch": 5, **fields})
        assert code_of(await peer.connection.send(request, 7)) == expected
        changed = node.replicas.partitions[TOPIC, 0].leader_epoch == 5
        assert changed == (expected == (ErrorCode.NONE, ErrorCode.NONE))
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NONE

    with_topic(check)


def test_the_same_leader_epoch_may_bring_news_of_the_isr() -> None:
    """A newer partition epoch is taken over, an older one passed over; nothing else changes."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        leader = node.replicas.partitions[TOPIC, 0].leader
        assert leader is not None
        epoch = leader.leader_epoch
        for partition_epoch, isr, committed in ((100, [1, 9], {1, 9}), (50, [1], {1, 9})):
            request = leader_and_isr(node, epoch, partition_epoch=partition_epoch, isr=isr)
            assert code_of(await peer.connection.send(request, 7)) == (0, 0)
            assert node.replicas.partitions[TOPIC, 0].leader is leader
            assert leader.isr.committed == committed

    with_topic(check)


def test_a_broker_without_an_epoch_waits_before_it_obeys() -> None:
    """What arrives before the registration may be meant for the former life: it is judged when the epoch is known."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await cluster.create_topic(TOPIC)
            node = cluster.nodes[1]
            former = node.control.broker_epoch
            request = leader_and_isr(node, 50)
            await cluster.crash(1)
            starting = asyncio.ensure_future(cluster.start(1))
            await cluster.until(lambda: 1 in cluster.nodes)
            peer = Client(await cluster.connect(1, "PEERS"))
            assert request.broker_epoch == former
            assert code_of(await peer.connection.send(request, 7)) == (ErrorCode.STALE_BROKER_EPOCH, None)
            await starting
            assert cluster.nodes[1].control.broker_epoch > former

    run(main())


def test_a_broker_that_stops_without_an_epoch_waits_no_longer() -> None:
    """It never gets one: the request that waits for it ends with the broker."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await cluster.create_topic(TOPIC)
            request = leader_and_isr(cluster.nodes[1], 50)
            await cluster.crash(1)
            starting = asyncio.ensure_future(cluster.start(1))
            await cluster.until(lambda: 1 in cluster.nodes)
            peer = Client(await cluster.connect(1, "PEERS"))
            asking = asyncio.ensure_future(peer.connection.send(request, 7))
            await asyncio.sleep(0.1)
            process = cluster.kill(1)
            assert process.node.control.broker_epoch < 0
            await cluster.bury(process)
            ends = await asyncio.gather(starting, asking, return_exceptions=True)
            assert all(isinstance(end, ConnectionError) for end in ends), ends
            await asyncio.sleep(0.1)
            assert [left for left in cluster.left_of(process) if "MemoryWires." not in left] == []

    run(main())


@pytest.mark.parametrize("fails", [False, True], ids=["good disk", "failing at first"])
def test_topic_ids_of_new_replicas_are_written_together_before_they_have_a_role(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wait for the disk for all partitions of a request; what fails then is tried again one by one."""
    together: list[set[str]] = []
    partitions = {f"many-{number}" for number in range(20)}

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            node = cluster.nodes[1]
            real = MemoryStorage.write_atomic_all

            def write_atomic_all(storage: MemoryStorage, files: Any) -> None:
                together.append({path.split("/")[-2] for path in files})
                assert not node.replicas.partitions
                if fails:
                    raise OSError(5, "input/output error")
                real(storage, files)

            monkeypatch.setattr(MemoryStorage, "write_atomic_all", write_atomic_all)
            await cluster.create_topic("many", partitions=20)
            topic = node.metadata.topic("many")
            assert topic is not None
            assert {f"{name}-{number}" for name, number in node.replicas.partitions} == partitions
            assert {log.topic_id for log in node.logs} == {topic.topic_id}
            await cluster.crash(1, power_loss=True)
            await cluster.start(1)
            assert {log.topic_id for log in cluster.nodes[1].logs} == {topic.topic_id}

    run(main())
    assert together == [partitions]


def test_update_metadata_is_fenced() -> None:
    """A controller of yesterday cannot tell a broker that others have died."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        fields = from_controller(node, topic_states=[], live_brokers=[], type=1)
        response = await peer.connection.send(UPDATE_METADATA(**{**fields, "controller_epoch": 0}), 8)
        assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert len(node.metadata.alive_brokers()) == 1
        response = await peer.connection.send(UPDATE_METADATA(**{**fields, "broker_epoch": -1}), 8)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        impossible = UPDATE_METADATA.UpdateMetadataBroker(id=-3, endpoints=[], rack=None)
        response = await peer.connection.send(UPDATE_METADATA(**{**fields, "live_brokers": [impossible]}), 8)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert len(node.metadata.alive_brokers()) == 1
        response = await peer.connection.send(UPDATE_METADATA(**fields), 8)
        assert response.error_code == ErrorCode.NONE
        assert node.metadata.alive_brokers() == []

    with_topic(check)


@pytest.mark.parametrize(
    ("replicas", "epochs_ahead", "leads"), [([2, 3], 1, False), ([2, 3], 0, True), ([1, 2], 1, True)]
)
def test_metadata_ends_the_role_of_a_replica_that_is_elsewhere_now(
    replicas: list[int], epochs_ahead: int, leads: bool
) -> None:
    """A broker that was away during a reassignment would lead on in its old epoch: no LeaderAndIsr names it."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        partition = node.replicas.partitions[TOPIC, 0]
        topic = UPDATE_METADATA.UpdateMetadataTopicState
        state = topic.UpdateMetadataPartitionState(
            partition_index=0, controller_epoch=1000, leader=replicas[0],
            leader_epoch=partition.leader_epoch + epochs_ahead, isr=replicas, zk_version=100, replicas=replicas,
            offline_replicas=[],
        )  # fmt: skip
        states = [topic(topic_name=TOPIC, topic_id=partition.topic_id, partition_states=[state])]
        fields = from_controller(node, topic_states=states, live_brokers=[], type=1)
        assert (await peer.connection.send(UPDATE_METADATA(**fields), 8)).error_code == ErrorCode.NONE
        assert (partition.leader is not None) == leads
        produced = await client.produce(TOPIC, batch(b"a"), acks=1)
        assert produced.error is (ErrorCode.NONE if leads else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    with_topic(check)


def test_a_replica_is_not_deleted_for_a_sender_who_knows_no_epoch_or_names_a_path() -> None:
    """Nothing of the request is carried out."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        states = STOP_REPLICA.StopReplicaTopicState
        state = states.StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
        real, path = (states(topic_name=name, partition_states=[state]) for name in (TOPIC, "../data/" + TOPIC))
        for fields, code in (
            ({"topic_states": [real], "broker_epoch": -1}, ErrorCode.STALE_BROKER_EPOCH),
            ({"topic_states": [real, path]}, ErrorCode.INVALID_REQUEST),
        ):
            response = await peer.connection.send(STOP_REPLICA(**from_controller(node, **fields)), 4)
            assert response.error_code == code
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NONE

    with_topic(check)


def test_a_broker_is_not_sent_away_by_a_sender_who_does_not_know_its_epoch() -> None:
    """ControlledShutdown with -1 moved every leadership of a broker that had asked for nothing."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        controller = next(node for node in cluster.nodes.values() if node.control.is_controller)
        peer = Client(await cluster.connect(controller.config.broker_id, "PEERS"))
        request = request_class(ApiKey.CONTROLLED_SHUTDOWN)(broker_id=leader, broker_epoch=-1, version=3)
        response = await peer.connection.send(request, 3)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NONE

    with_topic(check, brokers=2, replicas=2)


@pytest.mark.parametrize(("leader_epoch", "code"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (-2, 0), (9, 0)])
def test_stop_replica_is_fenced_by_the_leader_epoch(leader_epoch: int, code: int) -> None:
    """An older epoch is refused; -2 is a deletion, which passes."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        assert code_of(await peer.connection.send(leader_and_isr(node, 5), 7)) == (0, 0)
        state = STOP_REPLICA.StopReplicaTopicState.StopReplicaPartitionState(
            partition_index=0, leader_epoch=leader_epoch, delete_partition=True
        )
        topic = STOP_REPLICA.StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])
        response = await peer.connection.send(STOP_REPLICA(**from_controller(node, topic_states=[topic])), 4)
        assert [each.error_code for each in response.partition_errors] == [code]
        assert ((TOPIC, 0) in node.replicas.partitions) == bool(code)
        if not code:
            assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER

    with_topic(check)


@pytest.mark.parametrize("is_another_topic", [False, True], ids=["the same topic", "another topic"])
def test_a_role_waits_until_the_log_of_before_is_deleted(
    is_another_topic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checkpoint lines go with it, off the loop: a log that had a role meanwhile would have none from then on."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        topic_id = uuid4() if is_another_topic else node.replicas.partitions[TOPIC, 0].topic_id
        for _ in range(3):
            await client.produce(TOPIC, batch(b"a"))
        log = node.logs.get(TOPIC, 0)
        assert log is not None
        log.advance_log_start_offset(2)
        node.logs.checkpoint_log_starts()
        begun, goes_on = asyncio.Event(), asyncio.Event()
        real = node._blocking

        async def slow(work: Any) -> None:
            begun.set()
            await real(work)
            await goes_on.wait()

        peer, other = Client(await cluster.connect(1, "PEERS")), Client(await cluster.connect(1, "PEERS"))
        monkeypatch.setattr(node._roles, "_blocking", slow)
        state = STOP_REPLICA.StopReplicaTopicState.StopReplicaPartitionState(
            partition_index=0, leader_epoch=-2, delete_partition=True
        )
        topic = STOP_REPLICA.StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])
        stop = STOP_REPLICA(**from_controller(node, topic_states=[topic]))
        stopping = asyncio.ensure_future(peer.connection.send(stop, 4))
        await begun.wait()
        monkeypatch.setattr(node._roles, "_blocking", real)
        leading = asyncio.ensure_future(other.connection.send(leader_and_isr(node, 9, topic_id=topic_id), 7))
        await asyncio.sleep(1)
        assert not leading.done()
        goes_on.set()
        assert [each.error_code for each in (await stopping).partition_errors] == [ErrorCode.NONE]
        assert code_of(await leading) == (ErrorCode.NONE, ErrorCode.NONE)
        now = node.logs.get(TOPIC, 0)
        assert now is not None and now is not log
        assert (now.topic_id, now.log_start_offset, now.log_end_offset) == (topic_id, 0, 0)
        assert (await client.produce(TOPIC, batch(b"b"))).error is ErrorCode.NONE

    with_topic(check)


def test_a_waiting_fetch_is_told_of_the_new_epoch() -> None:
    """A parked fetch of a known epoch is fenced at once; one that names none waits on."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        node = cluster.nodes[1]
        peer = Client(await cluster.connect(1, "PEERS"))
        knowing, trusting = Client(await cluster.connect(1)), Client(await cluster.connect(1))
        epoch = node.replicas.partitions[TOPIC, 0].leader_epoch
        first = asyncio.ensure_future(knowing.fetch(TOPIC, 0, max_wait_ms=20_000, leader_epoch=epoch))
        second = asyncio.ensure_future(trusting.fetch(TOPIC, 0, max_wait_ms=20_000))
        await asyncio.sleep(0.1)
        await peer.connection.send(leader_and_isr(node, epoch + 1), 7)
        assert (await first).error is ErrorCode.FENCED_LEADER_EPOCH
        assert not second.done()
        await (Client(await cluster.connect(1))).produce(TOPIC, batch(b"a"))
        assert (await second).values == [b"a"]

    with_topic(check)


def test_a_disk_that_fails_ends_the_broker() -> None:
    """The write is answered KAFKA_STORAGE_ERROR, and the process is told to stop: others take over."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        log = cluster.nodes[1].replicas.partitions[TOPIC, 0].log

        def failing(*_buffers: object) -> int:
            raise OSError(28, "no space left on device")

        log._local.segments.active.file.append = failing  # type: ignore[method-assign,assignment]
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.KAFKA_STORAGE_ERROR
        assert [broker for broker, _ in cluster.failures] == [1]
        cluster.failures.clear()

    with_topic(check)


def failing(*_arguments: object, **_named: object) -> int:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("leads", [True, False], ids=["to lead", "to follow"])
def test_a_disk_that_fails_while_a_role_is_taken_ends_the_broker(leads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error code for the controller is not enough; and the role that was not taken may be given again."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        node = cluster.nodes[1]
        partition = node.replicas.partitions[TOPIC, 0]
        await client.produce(TOPIC, batch(b"a"))
        epoch = partition.leader_epoch
        role = Role(1 if leads else 2, epoch + 1, partition.partition_epoch, (1,), (1, 2))
        asked = [ReplicaAssignment(TOPIC, partition.topic_id, 0, role)]
        roles = node._roles
        monkeypatch.setattr(type(cluster.storages[1]), "open", failing)
        monkeypatch.setattr(FollowerLog, "begin", lambda follower: follower._log.set_topic_id(partition.topic_id))
        assert roles.assign(asked)[TOPIC, 0] is ErrorCode.KAFKA_STORAGE_ERROR
        monkeypatch.undo()
        assert [broker for broker, _ in cluster.failures] == [1]
        cluster.failures.clear()
        assert partition.leader_epoch == epoch
        assert (partition.leader is not None) is leads, "who is not to lead any more does not"
        assert roles.assign(asked)[TOPIC, 0] is ErrorCode.NONE
        assert partition.leader_epoch == epoch + 1

    with_topic(check)


def test_a_log_that_cannot_be_made_ends_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """EIO for a new topic's log is a failure of the disk, as it is for Kafka."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        storage = cluster.storages[1]
        open_file = storage.open

        def full(path: str, *, create: bool = True, keep: bool = False):
            if "/new-0" in path:
                raise OSError(errno.EIO, "Input/output error")
            return open_file(path, create=create, keep=keep)

        monkeypatch.setattr(storage, "open", full)
        await cluster.create_topic("new")
        await cluster.until(lambda: bool(cluster.failures))
        assert "Input/output error" in str(cluster.failures[0][1])
        cluster.failures.clear()

    with_topic(check)


def test_too_many_files_cost_the_new_log_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """EMFILE says nothing of the disk: that replica is offline, and the others are served. (Kafka would end here.)"""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        storage = cluster.storages[1]
        open_file = storage.open

        def full(path: str, *, create: bool = True, keep: bool = False):
            if "/new-0" in path:
                raise OSError(errno.EMFILE, "Too many open files")
            return open_file(path, create=create, keep=keep)

        monkeypatch.setattr(storage, "open", full)
        await cluster.create_topic("new")
        await cluster.until(lambda: cluster.nodes[1].metadata.partition("new", 0).leader < 0)
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NONE
        assert cluster.failures == []

    with_topic(check)


def test_a_read_that_fails_ends_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetch is answered KAFKA_STORAGE_ERROR; its partition must be led by somebody else."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a"))
        monkeypatch.setattr(LocalLog, "read", failing)
        assert (await client.fetch(TOPIC, 0)).error is ErrorCode.KAFKA_STORAGE_ERROR
        assert [broker for broker, _ in cluster.failures] == [1]
        cluster.failures.clear()

    with_topic(check)
