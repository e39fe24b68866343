"""The load's processes as faults see them: which run, what they acknowledged, and who gets which orders."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from chaos.conductor.breakable_load import BreakableLoad
from tests.chaos.fake_cluster import FakeProcess
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.series import SeriesPoint


def test_orders_go_to_the_processes_of_those_who_are_named(tmp_path: Path) -> None:
    """All of one call have one number, and later ones a higher one; who is no member of the load gets none."""
    directory = RunDirectory(tmp_path)
    directory.loadgen_dir.mkdir()
    load = BreakableLoad(directory, lambda _part: {})
    names = ["members-native-0-3", "members-confluent-2-0-after-1", "members-native-1-5", "stranger"]
    assert asyncio.run(load.end_members("crash", names, 4.0)) == 1
    assert asyncio.run(load.end_members("restart", names[:1], 0.1)) == 2

    def orders(process: str) -> list[Any]:
        lines = map(json.loads, directory.orders_jsonl(process).read_text().splitlines())
        return [(line["number"], line["place"], line["end"], line["absence_s"]) for line in lines]

    assert orders("members-native") == [(1, 0, "crashed", 4.0), (1, 1, "crashed", 4.0), (2, 0, "restarted", 0.1)]
    assert orders("members-confluent") == [(1, 2, "crashed", 4.0)]


def test_a_process_that_has_ended_is_no_target(tmp_path: Path) -> None:
    """What a process acknowledged is what its status says, nothing without one."""
    directory = RunDirectory(tmp_path)
    directory.loadgen_dir.mkdir()
    children = {
        "producers": {"producers-1": FakeProcess(1), "producers-2": FakeProcess(2, running=False)},
        "readers": {"readers-native": FakeProcess(3)},
        "members": {},
    }
    load = BreakableLoad(directory, lambda part: children[part])
    assert load.processes("producers") == ("producers-1",)
    assert load.process("producers-2").pid == 2
    assert asyncio.run(load.acknowledged("producers-1")) == 0
    assert asyncio.run(load.last_acked_ns("producers-1", 0)) == 0
    point = SeriesPoint("producers-1", 5, 1, total_acked=77, last_acked_ns={"0": 3, "1": 4})
    directory.status_json("producers-1").write_text(json.dumps(point.to_json()))
    assert asyncio.run(load.acknowledged("producers-1")) == 77
    assert [asyncio.run(load.last_acked_ns("producers-1", each)) for each in range(3)] == [3, 4, 0]


def test_who_is_killed_is_said_before_and_what_it_read_is_known(tmp_path: Path) -> None:
    """The conductor must know that this death is no accident, also if it looks right after the signal."""
    directory = RunDirectory(tmp_path)
    directory.loadgen_dir.mkdir()
    reader = FakeProcess(3)
    told: list[tuple[str, bool]] = []
    children = {"producers": {}, "readers": {"readers-native": reader}, "members": {}}
    load = BreakableLoad(directory, lambda part: children[part], lambda name: told.append((name, reader.running)))
    directory.status_json("readers-native").write_text(json.dumps(SeriesPoint("r", 5, 1, total_read=8).to_json()))
    assert asyncio.run(load.handed("readers-native")) == 8
    asyncio.run(load.kill("readers-native"))
    assert told == [("readers-native", True)] and load.processes("readers") == ()
