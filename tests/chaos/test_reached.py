"""What a run reached, counted from the journals of its brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.reached import Reached, reached, reached_by, told, total
from tests.verifier.planted import clean
from verifier.evidence.run_directory import RunDirectory, append_json_line, write_json_atomic


def _entry(event: str, time_ns: int, **details: object) -> dict[str, Any]:
    return {"event": event, "wall_ms": 0, "monotonic_ns": time_ns, **details}


def _change(
    time_ns: int, leader: int, epoch: int, isr: list[int], reason: str, topic: str = "t", partition: int = 0
) -> dict[str, Any]:
    place = {"topic": topic, "partition": partition, "leader": leader, "leader_epoch": epoch, "isr": isr}
    return _entry("partition-changed", time_ns, **place, reason=reason)


def _cut(time_ns: int, offset: int, log_end_offset: int, topic: str = "t", partition: int = 0) -> dict[str, Any]:
    cut = {"offset": offset, "log_end_offset": log_end_offset, "cause": "diverging epoch"}
    return _entry("log-truncated", time_ns, topic=topic, partition=partition, **cut)


#: Two brokers: 1 was the controller first, then 2.
FIRST = [
    _entry("controller-elected", 1, epoch=1),
    _change(2, 1, 0, [1, 2, 3], "new partition"),
    _change(3, 2, 0, [2, 3, 1], "new partition", partition=1),
    _change(4, 1, 0, [1, 2, 3], "new partition", topic="__consumer_offsets"),
    _entry("producer-ids", 5, broker=1, first=0, last=999),
    _change(6, 1, 0, [1, 2], "alter partition"),
]
SECOND = [
    _entry("session-expired", 7),
    _entry("controller-elected", 8, epoch=2),
    _change(9, 2, 1, [2], "leader offline"),
    _change(10, 2, 1, [2], "leader offline", topic="__consumer_offsets"),
    _change(11, -1, 2, [2], "no live replica in the ISR"),
    _change(12, 2, 3, [2], "leader offline"),
    _entry("batches-resent", 13, retries=12, duplicates=4),
    _cut(14, 90, 95),
    _cut(15, 100, 250, partition=1),
    _cut(16, 100, 100),
    _cut(17, 5, 9, topic="__consumer_offsets"),
    _entry("batches-resent", 18, retries=1, duplicates=0),
]


def test_journals_are_counted_together_in_the_order_of_time() -> None:
    """Epochs of each partition, sizes of ISRs, cuts by length, elections by their reasons; internal topics apart."""
    found = reached([*SECOND, *FIRST])
    assert found == Reached(
        leader_epochs={"t-0": 4, "t-1": 1},
        isr_sizes={"1": 3, "2": 1, "3": 2},
        truncations={"1-9": 1, "100-999": 1},
        truncated={"t-0": 1, "t-1": 1},
        elections={"leader offline": 2, "none": 1},
        coordinator_failovers={"group": 1},
        resent={"retried": 13, "deduplicated": 4},
        controllers=2,
        sessions_expired=1,
        producer_id_blocks=1,
    )
    assert Reached.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_what_came_when_the_cluster_was_being_stopped_does_not_count(tmp_path: Path) -> None:
    """Without a fault nothing was reached, though every leader was moved in the end; resent batches are told late."""
    assert reached([*FIRST, *SECOND], stop_ns=7) == reached([*FIRST, *(each for each in SECOND if "retries" in each)])
    directory, run = RunDirectory(tmp_path).prepare(), clean().model()
    stop = run.phase("stop")
    assert stop is not None
    directory.node(1).mkdir()
    late = [_change(stop.start_ns + step, 2, step, [2], "controlled shutdown of the leader") for step in (0, 1)]
    for entry in (*FIRST, *late):
        append_json_line(directory.control_jsonl(1), entry)
    assert reached_by(directory) == reached([*FIRST, *late])
    write_json_atomic(directory.run_json, run.to_json())
    assert reached_by(directory) == reached(FIRST)


def test_it_is_told_in_words() -> None:
    """What was not reached is left out."""
    assert reached([*SECOND, *FIRST]).line() == (
        "leader epochs per partition: 1 to 4 (median 2.5); ISR sizes: 1, 2, 3; "
        "truncations: 2 in 2 partitions (1-9 records 1, 100-999 records 1); elections: 3 (leader offline 2, none 1); "
        "coordinator failovers: 1 (group 1); batches that were resent: 4 deduplicated, 13 retried; controllers: 2; "
        "ZooKeeper sessions that expired: 1; producer-id blocks: 1"
    )
    assert reached(FIRST).figures()["leader epochs per partition"] == "1"
    assert Reached().line() == "nothing" and Reached().figures() == {}


def test_runs_add_up() -> None:
    """Figures are summed; a run without journals adds nothing."""
    one = reached(FIRST)
    both = total([one, reached(SECOND), Reached()])
    assert (both.controllers, both.producer_id_blocks) == (2, 1)
    assert both.isr_sizes == {"1": 3, "2": 1, "3": 2}
    assert total([]) == Reached()


def test_what_is_new_is_a_kind_or_a_larger_figure() -> None:
    """A longer truncation, an ISR of another size; one retry more is nothing new."""
    few, many = Reached(resent={"retried": 12}), Reached(resent={"retried": 19})
    assert few.marks() == many.marks() == {f"batches retried: {step} or more" for step in (1, 2, 5, 10)}
    longer = reached([_cut(1, 0, 1500)]).marks() - reached([_cut(1, 0, 150)]).marks()
    assert longer == {"truncations of 1000-9999 records: 1 or more"}
    assert "ISR size 1" in reached(SECOND).marks() - reached(FIRST).marks()
    assert Reached().marks() == frozenset()
    assert told([*few.marks(), *reached(FIRST).marks(), *reached(SECOND).marks()])[:2] == ["ISR size 1", "ISR size 2"]
    assert told(few.marks()) == ["batches retried: 10 or more"] and told([]) == []


@pytest.mark.parametrize("damage", ["no json", '{"event": "partition-changed", "monotonic_ns": 3}', "[]"])
def test_a_journal_that_cannot_be_read_tells_nothing(damage: str, tmp_path: Path) -> None:
    """The others do: no verdict depends on any of them."""
    directory = RunDirectory(tmp_path).prepare()
    for broker, entries in ((1, FIRST), (2, SECOND)):
        directory.node(broker).mkdir()
        for entry in entries:
            append_json_line(directory.control_jsonl(broker), entry)
    assert reached_by(directory) == reached([*FIRST, *SECOND])
    directory.control_jsonl(2).write_text(f"{damage}\n")
    assert reached_by(directory) == reached(FIRST)
