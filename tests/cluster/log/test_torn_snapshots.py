"""What a power loss tears of the producers' snapshots, which no one syncs: the next start leaves no damaged file."""

from __future__ import annotations

import logging

import pytest

from cluster.log.config import LogConfig
from cluster.log.errors import CheckpointError
from cluster.log.manager import LogManager
from cluster.log.producer_snapshot import parse_snapshot
from cluster.log.snapshots import parse_histories
from tests.cluster.log.builders import Bench, bench, produce

ROLLING = LogConfig(segment_bytes=200)
DIRECTORY = "data/t-0"


@pytest.fixture
def on() -> Bench:
    return bench()


def started(on: Bench) -> LogManager:
    manager = LogManager("data", on.storage, on.clock, ROLLING)
    manager.load()
    return manager


def damaged(on: Bench) -> list[str]:
    """The snapshots and histories that do not have their checksum."""
    found = []
    for name in on.storage.listdir(DIRECTORY):
        parse = {"snapshot": parse_snapshot, "producers": parse_histories}.get(name.rpartition(".")[2])
        try:
            if parse is not None:
                parse(on.storage.read(f"{DIRECTORY}/{name}"))
        except CheckpointError:
            found.append(name)
    return found


@pytest.mark.parametrize("kind", ["snapshot", "producers"])
def test_a_start_leaves_no_torn_snapshot(on: Bench, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of any segment, of none anymore, and at the very end of the log, where a whole one is written instead."""
    manager = started(on)
    log = manager.get_or_create("t", 0, None, ROLLING)
    for sequence in range(9):
        produce(log, sequence)
    on.storage.power_loss(lambda path, unsynced: unsynced)  # the logs are there; they were not closed
    started(on)  # writes a snapshot at the end of the log, which is no segment's
    whole = [name for name in on.storage.listdir(DIRECTORY) if name.endswith(kind)]
    assert len(whole) > 3
    end = f"{9:020d}.{kind}"
    assert end in whole
    for name in whole:
        data = on.storage.read(f"{DIRECTORY}/{name}")
        on.storage.open(f"{DIRECTORY}/{name}").truncate(len(data) - 3)
    assert damaged(on) == whole
    with caplog.at_level(logging.WARNING):
        again = started(on).get("t", 0)
    assert damaged(on) == []
    assert f"removing {DIRECTORY}/{end}" in caplog.text
    assert end in on.storage.listdir(DIRECTORY)
    assert again is not None
    entry = again.producers.get(7)
    assert entry is not None
    assert (again.log_end_offset, entry.last_sequence) == (9, 8)
