"""Whole runs with each fault on the load: it bites, is healed, and costs no evidence and no verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.leftovers import Place
from tests.support.require import require

#: What each fault chooses and says is tested in the gate, on a cluster of numbers.
pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

RUN_S = 840.0
#: A transaction's timeout in the load, and what an election and the looks in between add.
MOST_STANDSTILL_S = 15.0 + 5.0


@pytest.mark.parametrize(
    ("fault", "workload", "client"),
    [
        ("pause-producers", "transactions", "confluent"),
        ("pause-producers", "rivals", "native"),
        ("pause-members", "groups", "confluent"),
        ("crash-members", "pipeline", "native"),
        ("restart-members", "groups", "native"),
        ("kill-producers", "steady", "confluent"),
        ("kill-readers", "steady", "native"),
    ],
)
def test_a_fault_on_the_load_bites_and_the_run_is_valid(tmp_path: Path, fault: str, workload: str, client: str) -> None:
    """Sleepers wake up as zombies, members are replaced, the dead are missed; nothing is lost, torn or left open."""
    require("java")
    more = {"groups": ("--rate", "200"), "steady": ("--load-processes", "2")}.get(workload, ())
    asked = ("--workload", workload, "--faults", fault, "--client", client, "--time-limit", "30", "--seed", "5", *more)
    with Place(tmp_path) as place:
        assert place.run("run", *asked, "--keep", "all", timeout_s=RUN_S) == 0, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
    run = tmp_path / "results" / "latest"
    verdict = json.loads((run / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["reasons"]) == ("valid", [])
    kinds = verdict["stats"]["faults"]["kinds"]
    assert kinds[fault]["effective"] >= 1
    if workload not in ("groups", "steady"):
        assert 0 <= verdict["stats"]["stable_offsets"]["longest_s"] <= MOST_STANDSTILL_S
    ends = [json.loads(line) for line in (run / "faults.jsonl").read_text().splitlines()]
    assert all(each["healed"] for each in ends if each["phase"] == "heal")
