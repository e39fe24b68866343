"""``gapless replay`` and ``gapless shrink`` on real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.schedules.model import from_yaml
from tests.support.leftovers import Place
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(1800)]

#: On a machine that does much else; a quiet one needs a quarter.
RUN_S = 300.0
#: What a replay promises for events that wait for nothing.
PUNCTUAL_MS = 50.0


def test_a_replay_breaks_the_same_at_the_same_times(tmp_path: Path) -> None:
    """Each fault again, as it was drawn, within 50 ms of its time; and valid, as the run was."""
    require("java")
    with Place(tmp_path) as place:
        faults = "kill-leader,cut-link,pause-leader,drop-response"
        shape = ("--faults", faults, "--overlap", "--time-limit", "30", "--rate", "300", "--seed", "5")
        assert place.run("run", *shape, "--out", "first", timeout_s=RUN_S) == 0, place.err
        assert place.run("replay", "first", "--out", "again", "--json", timeout_s=RUN_S) == 0, place.err
        place.assert_nothing_left(within_s=1.0)
        told = json.loads(place.out)["replay"]
        assert told["largest_deviation_ms"] <= PUNCTUAL_MS, told
        assert told["events"] >= 4 and told["missing"] == []
        first, again = (
            [json.loads(line) for line in (tmp_path / name / "faults.jsonl").read_text().splitlines()]
            for name in ("first", "again")
        )
        struck = [entry for entry in first if entry["phase"] == "inject"]
        assert {entry["fault"] for entry in struck} == set(faults.split(","))
        replayed = from_yaml((tmp_path / "again" / "schedule.yaml").read_text())
        numbers = {index: each.replays for index, each in enumerate(replayed.injections)}
        found = {numbers[entry["number"]]: entry for entry in again if entry["phase"] == "inject"}
        for entry in struck:
            other = found[entry["number"]]
            assert other["fault"] == entry["fault"]
            assert [other["probe"].get(name) for name in ("direction", "lossless")] == [
                entry["probe"].get(name) for name in ("direction", "lossless")
            ]


def test_a_run_is_shrunk_to_what_it_takes(tmp_path: Path) -> None:
    """A bug that needs no fault: none is left, the load is short, and what is left fails when it is played."""
    require("java")
    with Place(tmp_path) as place:
        shape = ("--faults", "kill-leader", "--time-limit", "20", "--rate", "600", "--seed", "5", "--acks", "1")
        bug = ("--defect", "lose-acked:0.2", "--out", "red")
        assert place.run("run", *shape, *bug, timeout_s=RUN_S) == 1, place.err
        shrunk = ("shrink", "red", "--max-runs", "6", "--tries", "1", "--out", "small", "--json")
        assert place.run(*shrunk, timeout_s=6 * RUN_S) == 0, place.err
        place.assert_nothing_left(within_s=1.0)
        whole = json.loads(place.out)
        assert whole["events_before"] == 1 and whole["best"]["events"] == 0
        assert whole["best"]["time_limit_s"] < 20 and whole["runs"] <= 6
        assert whole["before"]["failed"] == whole["after"]["failed"] == 1
        played = ("--schedule", "small/schedule.yaml", "--time-limit", f"{whole['best']['time_limit_s']:g}")
        again = ("run", *played, "--rate", "600", "--acks", "1", "--defect", "lose-acked:0.2", "--out", "again")
        assert place.run(*again, timeout_s=RUN_S) == 1, place.err
        assert (tmp_path / "small" / "test_lost_write.py").is_file()
