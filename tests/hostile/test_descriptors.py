"""File descriptors: a flood of files keeps no connection out, a flood of connections no file and no peer."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain
from tests.hostile.target import target
from tests.hostile.test_connections import delete_topic, is_served
from tests.hostile.test_repetition import produce
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

DESCRIPTORS = 400
#: Of which it keeps an eighth back; an eighth of the others is for clients, and a sixteenth for peers.
FOR_CLIENTS = 43
FOR_PEERS = 21


def test_a_flood_of_files_leaves_descriptors_for_connections(tmp_path: Path) -> None:
    """One request of 100 bytes asks for more partitions than files may be open: clients and peers come in."""
    with target(tmp_path, DESCRIPTORS) as broker, ExitStack() as stack:
        plain = stack.enter_context(Plain(broker.port))
        plain.create_topic("many", 300)
        clients = [stack.enter_context(Plain(broker.port)) for _ in range(FOR_CLIENTS - 1)]
        peers = [stack.enter_context(Plain(broker.peer_port)) for _ in range(FOR_PEERS)]
        assert all(map(is_served, clients + peers))
        with Plain(broker.port) as client, Plain(broker.peer_port) as peer:
            assert not is_served(client) and not is_served(peer)


def test_a_flood_of_clients_leaves_descriptors_for_peers(tmp_path: Path) -> None:
    """And for new topics, while it continues."""
    with target(tmp_path, DESCRIPTORS) as broker, ExitStack() as stack:
        plain = stack.enter_context(Plain(broker.port))
        crowd = [stack.enter_context(Plain(broker.port)) for _ in range(DESCRIPTORS)]
        assert DESCRIPTORS // 2 < sum(map(is_served, crowd)) < DESCRIPTORS - FOR_PEERS
        peers = [stack.enter_context(Plain(broker.peer_port)) for _ in range(FOR_PEERS)]
        assert all(map(is_served, peers))
        assert plain.create_topic("new", 60) == ErrorCode.NONE
        assert "cannot take" not in broker.log()


def test_deleted_topics_keep_no_descriptors(tmp_path: Path) -> None:
    """Whatever file.delete.delay.ms is: only their directories wait. What holds records may be open for 5 s still."""
    with target(tmp_path, DESCRIPTORS) as broker, Plain(broker.port) as plain:

        def held() -> int:
            return sum("/many-" in file.path for file in broker.process.open_files())

        assert plain.create_topic("many", 150, file_delete_delay_ms="3600000") == ErrorCode.NONE
        assert until(lambda: held() == 150, 10)
        assert produce(plain, "many", batch(b"x" * 100)).error_code == ErrorCode.NONE
        assert delete_topic(plain, "many") == ErrorCode.NONE
        assert until(lambda: held() <= 1, 2)
        assert len([*broker.directory.glob("data/many-*-delete")]) == 150


def leaders(plain: Plain, topic: str) -> Counter[int]:
    """Who leads how many of its partitions."""
    asked = request_class(ApiKey.METADATA).MetadataRequestTopic(name=topic)
    (answer,) = plain.send(ApiKey.METADATA, 8, topics=[asked], allow_auto_topic_creation=False).topics
    return Counter(partition.leader_id for partition in answer.partitions)


def test_partitions_without_descriptors_get_them_later(tmp_path: Path) -> None:
    """They have no leader until others are deleted, and need no restart; the log has a line about all, not one each."""
    with target(tmp_path, 300) as broker, Plain(broker.port) as plain:
        assert plain.create_topic("first", 150) == ErrorCode.NONE
        before = len(broker.log())
        plain.create_topic("second", 140)
        assert until(lambda: 0 < leaders(plain, "second")[-1] < 140, 5)
        # The next start would open what is left of the others.
        assert until(lambda: len([*broker.directory.glob("data/second-*")]) == leaders(plain, "second")[1], 5)
        lines = broker.log()[before:].splitlines()
        assert len(lines) < 20, lines
        assert delete_topic(plain, "first") == ErrorCode.NONE
        assert until(lambda: leaders(plain, "second") == {1: 140}, 20)
        assert "can host" in broker.log()


def test_few_descriptors_last_for_a_flood(tmp_path: Path) -> None:
    """With 64, a turn of the loop accepts few enough connections that there are descriptors to turn them away with."""
    with target(tmp_path, 64) as broker, ExitStack() as stack:
        crowd = [stack.enter_context(Plain(broker.port)) for _ in range(150)]
        assert 0 < sum(map(is_served, crowd)) < 64
        assert "Traceback" not in broker.log()
        assert "clients have" in broker.log()
