"""Our Consumer in groups of ``gapless up``: beside other clients, and cooperative, static, slow and killed members."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from chaos.commands.main import run_command
from cluster.client import Admin, AdminError, Consumer, OffsetAndMetadata
from cluster.protocol.errors import ErrorCode
from tests.support.group_members import Group, NativeMember, have_read, have_shared, polling
from tests.support.kafka_clients import Confluent
from tests.support.native_clients import new_topic
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PARTITIONS = 4
ALL = set(range(PARTITIONS))
#: Records of each partition.
COUNT = 5
#: The least that brokers take.
SESSION_MS = 6_000
#: Where it says that it reads something, and nothing else.
MEMBER = """
import sys
from cluster.client import Consumer
bootstrap, group_id, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "session.timeout.ms": 6000})
consumer.subscribe([topic])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(0.1)
"""


@pytest.fixture
def topic(admin: Admin) -> str:
    """A new one, without records."""
    return new_topic(admin, PARTITIONS)


@pytest.fixture
def group(shared_cluster: UpCluster, topic: str) -> Iterator[Group]:
    """All its members have left in the end."""
    made = Group(shared_cluster.bootstrap, f"native-{uuid.uuid4().hex[:8]}", topic)
    yield made
    made.close()


def fill(cluster: UpCluster, topic: str) -> None:
    """``COUNT`` records in each partition."""
    client = Confluent(cluster.bootstrap)
    for partition in ALL:
        client.produce(topic, partition, [b"v"] * COUNT, "all", "none")


def native(group: Group, **settings: object) -> NativeMember:
    member = group.join("native", **settings)
    assert isinstance(member, NativeMember)
    return member


def test_members_of_three_clients_share_one_group(shared_cluster: UpCluster, topic: str, group: Group) -> None:
    """Each understands what another one assigns, and continues where another one has committed."""
    fill(shared_cluster, topic)
    ours = native(group, **{"partition.assignment.strategy": "range"})
    polling([ours], lambda: have_read([ours], PARTITIONS * COUNT), "what was there")
    ours.commit()
    others = [group.join("confluent", **{"partition.assignment.strategy": "range"}), group.join("kafka-python")]
    members = [ours, *others]
    polling(members, lambda: have_shared(members, PARTITIONS), "three members to share")
    fill(shared_cluster, topic)
    polling(members, lambda: have_read(members, 2 * PARTITIONS * COUNT), "the second part")
    for member in members:
        member.commit()
    for member in others:
        member.leave()
    polling([ours], lambda: ours.assigned() == ALL, "ours to take over")
    fill(shared_cluster, topic)
    polling([ours], lambda: have_read(members, 3 * PARTITIONS * COUNT), "the third part")
    for partition in ALL:
        read = [offset for member in members for offset in member.read().get(partition, [])]
        assert sorted(read) == list(range(3 * COUNT)), partition


def test_cooperative_members_keep_what_stays(shared_cluster: UpCluster, topic: str, group: Group) -> None:
    """KIP-429, with a member of another client: what ours keeps is neither revoked nor read again."""
    fill(shared_cluster, topic)
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    ours = native(group, **settings)
    polling([ours], lambda: have_read([ours], PARTITIONS * COUNT), "what was there")
    other = group.join("confluent", **settings)
    polling([ours, other], lambda: have_shared([ours, other], PARTITIONS), "two members to share")
    assert len(ours.assigned()) == PARTITIONS // 2
    given = [partitions for what, partitions in ours.told if what == "revoked"]
    assert given == [ALL - ours.assigned()]
    assert ours.told[0] == ("assigned", ALL)
    assert all(partitions == set() for what, partitions in ours.told[1:] if what == "assigned")
    assert ours.read() == {partition: list(range(COUNT)) for partition in ALL}


def test_a_static_member_is_restarted_without_a_rebalance(group: Group) -> None:
    """KIP-345: it leaves without a word, and its next life has the same partitions in the same generation."""
    settings = {"group.instance.id": "a", "session.timeout.ms": 30_000}
    first, other = native(group, **settings), native(group)
    polling([first, other], lambda: have_shared([first, other], PARTITIONS), "two members to share")
    before, generation = first.assigned(), other.consumer.group_metadata().generation_id
    heard = list(other.told)
    first.leave()
    again = native(group, **settings)
    polling([again, other], again.assigned, "the static member to be back")
    assert again.assigned() == before
    assert again.consumer.group_metadata().generation_id == generation
    assert other.told == heard


def test_a_member_that_does_not_poll_leaves(group: Group) -> None:
    """After max.poll.interval.ms another one takes over; the slow one is told what it has lost, and joins again."""
    slow = native(group, **{"max.poll.interval.ms": 1_000})
    polling([slow], lambda: slow.assigned() == ALL, "the slow member to have all")
    other = native(group, **{"session.timeout.ms": 45_000})
    polling([other], lambda: other.assigned() == ALL, "the other member to take over")
    assert slow.told == [("assigned", ALL)]
    polling([slow, other], lambda: have_shared([slow, other], PARTITIONS), "two members to share")
    assert slow.told[1] == ("lost", ALL)


def test_a_member_that_is_killed_is_replaced(shared_cluster: UpCluster, topic: str, group: Group) -> None:
    """kill -9: after its session another member has its partitions."""
    arguments = [shared_cluster.bootstrap, group.group_id, topic]
    with subprocess.Popen([sys.executable, "-c", MEMBER, *arguments], stdout=subprocess.PIPE, text=True) as killed:
        try:
            assert killed.stdout is not None and killed.stdout.readline() == "assigned\n"
            ours = native(group, **{"session.timeout.ms": SESSION_MS})
            polling([ours], lambda: len(ours.assigned()) == PARTITIONS // 2, "two members to share")
        finally:
            killed.send_signal(signal.SIGKILL)
    polling([ours], lambda: ours.assigned() == ALL, "ours to take over")


def test_admin_and_the_command_line_see_a_group(
    shared_cluster: UpCluster, admin: Admin, topic: str, group: Group, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who reads what, how far behind; offsets are moved and a group is deleted once its members have left."""
    fill(shared_cluster, topic)
    member = native(group, **{"client.id": "me"})
    polling([member], lambda: have_read([member], PARTITIONS * COUNT), "all records")
    member.consumer.commit_sync({(topic, 0): 2, (topic, 1): OffsetAndMetadata(3, metadata="x")})
    described = admin.describe_groups([group.group_id])[group.group_id]
    assert (described.state, described.protocol_name) == ("Stable", "range")
    assert [(each.client_id, set(each.partitions or ())) for each in described.members] == [
        ("me", {(topic, partition) for partition in ALL})
    ]
    assert admin.list_group_offsets(group.group_id)[topic, 1] == OffsetAndMetadata(3, -1, "x")
    at = ["--bootstrap-server", shared_cluster.bootstrap]
    assert run_command(["groups", "describe", group.group_id, "nothing", "--json", *at]) == 1
    told = json.loads(capsys.readouterr().out)[group.group_id]
    rows = [(row["partition"], row["committed"], row["end"], row["lag"], row["client"]) for row in told["offsets"]]
    assert rows == [
        (0, 2, COUNT, 3, "me"),
        (1, 3, COUNT, 2, "me"),
        (2, None, COUNT, None, "me"),
        (3, None, COUNT, None, "me"),
    ]
    assert run_command(["groups", "reset-offsets", group.group_id, "--to", "latest", "--execute", *at]) == 1
    assert "stop its consumers first" in capsys.readouterr().err
    for code, refused in (
        (ErrorCode.NON_EMPTY_GROUP, lambda: admin.delete_groups([group.group_id])),
        (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, lambda: admin.delete_group_offsets(group.group_id, [(topic, 0)])),
    ):
        with pytest.raises(AdminError) as raised:
            refused()
        assert raised.value.error_code is code
    member.leave()
    assert run_command(["groups", "reset-offsets", group.group_id, "--to", "-1", "--topic", f"{topic}:0", *at]) == 0
    assert admin.list_group_offsets(group.group_id, [(topic, 0)]) == {(topic, 0): OffsetAndMetadata(2)}
    assert run_command(["groups", "reset-offsets", group.group_id, "--to", "latest", "--execute", *at]) == 0
    admin.delete_group_offsets(group.group_id, [(topic, 0)])
    assert admin.list_group_offsets(group.group_id) == {(topic, 1): OffsetAndMetadata(COUNT)}
    assert (group.group_id, "Classic") in {(each.group_id, each.group_type) for each in admin.list_groups(["Empty"])}
    assert run_command(["groups", "delete", group.group_id, *at]) == 0
    assert admin.describe_groups([group.group_id])[group.group_id].state == "Dead"


def test_assigned_partitions_use_the_groups_offsets(shared_cluster: UpCluster, topic: str) -> None:
    """Without membership: commits by themselves, asynchronous ones in their order, and the next one continues there."""
    fill(shared_cluster, topic)
    config = {
        "bootstrap.servers": shared_cluster.bootstrap,
        "group.id": f"alone-{topic}",
        "auto.offset.reset": "earliest",
    }
    told: list[tuple[object, object]] = []
    with Consumer({**config, "auto.commit.interval.ms": 100}) as first:
        first.assign([(topic, 0)])
        while first.position((topic, 0)) < COUNT:
            first.poll(1)
    with Consumer({**config, "enable.auto.commit": False}) as second:
        second.assign([(topic, 0), (topic, 1)])
        assert second.position((topic, 0)) == COUNT
        assert second.position((topic, 1)) == 0
        for offset in (1, 2, 3):
            second.commit_async({(topic, 1): offset}, lambda offsets, error: told.append((offsets, error)))
        second.commit_sync({(topic, 2): 1})
        assert second.committed([(topic, partition) for partition in ALL]) == {
            (topic, 0): OffsetAndMetadata(COUNT, 0),
            (topic, 1): OffsetAndMetadata(3),
            (topic, 2): OffsetAndMetadata(1),
            (topic, 3): None,
        }
    assert told == [({(topic, 1): OffsetAndMetadata(offset)}, None) for offset in (1, 2, 3)]
