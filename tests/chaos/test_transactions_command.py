"""``gapless transactions``: which open transactions hang, and where it looks for brokers.

What it asks of a cluster is tested with one (``tests/integration/test_transactions_tool.py``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from chaos.commands import cluster_admin
from chaos.commands.cluster_admin import BROKERS, CLIENTS, admin_of
from chaos.commands.hanging_transactions import OpenTransaction, hanging, open_transactions, still_open
from chaos.exits import BadRequest
from cluster.client.partition_calls import ProducerState
from cluster.client.transaction_descriptions import DescribedTransaction

KEY = ("t", 0)
MINUTE_MS = 60_000
NOW_MS = 100 * MINUTE_MS
#: Open since offset 5, its last record ten minutes ago.
PRODUCER = ProducerState(7, 1, 3, NOW_MS - 10 * MINUTE_MS, -1, 5)
OPEN = OpenTransaction("t", 0, 7, 1, -1, 5, PRODUCER.last_timestamp, 10)


def test_what_is_open_for_too_long() -> None:
    """By the last record: longer than the time, not as long; one without an open transaction does not hang."""
    assert open_transactions({KEY: [PRODUCER]}, 10 * MINUTE_MS - 1, NOW_MS) == [OPEN]
    assert open_transactions({KEY: [PRODUCER]}, 10 * MINUTE_MS, NOW_MS) == []
    assert open_transactions({KEY: [replace(PRODUCER, current_txn_start_offset=-1)]}, 0, NOW_MS) == []
    assert open_transactions({KEY: [replace(PRODUCER, current_txn_start_offset=0)]}, 0, NOW_MS) != []


def test_what_no_coordinator_will_end() -> None:
    """Hanging is what is in no transaction of that very producer; what waits for its marker does not hang."""
    described = DescribedTransaction("id", 1, 7, 1, "Ongoing", 60_000, 0, (KEY,))
    assert hanging([OPEN], []) == [OPEN]
    assert hanging([OPEN], [described]) == []
    assert hanging([OPEN], [replace(described, state="PrepareCommit", producer_epoch=2)]) == []
    assert hanging([OPEN], [replace(described, partitions=(("t", 1), ("u", 0)))]) == [OPEN]
    assert hanging([OPEN], [replace(described, producer_id=8)]) == [OPEN]


def test_what_is_over_at_a_second_look_did_not_hang() -> None:
    """Its marker came after the first look: ended, or followed by another transaction of the same producer."""
    assert still_open([OPEN], {KEY: [PRODUCER]}) == [OPEN]
    assert still_open([OPEN], {KEY: [replace(PRODUCER, current_txn_start_offset=-1)]}) == []
    assert still_open([OPEN], {KEY: [replace(PRODUCER, current_txn_start_offset=9)]}) == []
    assert still_open([OPEN], {("t", 1): [PRODUCER]}) == []


def test_the_listener_of_what_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that is up is asked where clients connect, and for markers where brokers do. A state file of an older
    cluster does not say where that is."""
    monkeypatch.setattr(cluster_admin, "running", lambda _data: psutil.Process())
    state = {"bootstrap.servers": "127.0.0.1:1", "peers": "127.0.0.1:2"}
    (tmp_path / "up.json").write_text(json.dumps(state))
    for listener, port in ((CLIENTS, 1), (BROKERS, 2)):
        with admin_of(None, tmp_path, listener=listener) as admin:
            assert f"('127.0.0.1', {port})" in repr(admin)
    del state["peers"]
    (tmp_path / "up.json").write_text(json.dumps(state))
    with (
        pytest.raises(BadRequest, match="name the cluster with --bootstrap-server"),
        admin_of(None, tmp_path, listener=BROKERS),
    ):
        pass
