"""File descriptors: a flood of files keeps no connection out, a flood of connections no file and no peer."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.protocol.errors import ErrorCode
from tests.hostile.absence import Plain
from tests.hostile.target import target
from tests.hostile.test_connections import is_served

pytestmark = pytest.mark.integration

DESCRIPTORS = 600
#: Of which it keeps an eighth back; a quarter of the others is for clients, and a sixteenth for peers.
FOR_CLIENTS = 131
FOR_PEERS = 32


def test_a_flood_of_files_leaves_descriptors_for_connections(tmp_path: Path) -> None:
    """One request of 100 bytes asks for more partitions than files may be open: clients and peers come in."""
    with target(tmp_path, DESCRIPTORS) as broker, ExitStack() as stack:
        plain = stack.enter_context(Plain(broker.port))
        plain.create_topic("many", 500)
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
