"""``gapless run --workload transactions``, from end to end: real transactions, told as they were, and a valid run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.support.histories import read_histories
from tests.support.leftovers import Place
from tests.support.require import require

#: The gate has the same users at librdkafka's mock cluster, and other whole runs.
pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(600)]

RUN_S = 480.0
ASKED = ("--workload", "transactions", "--time-limit", "6", "--faults", "none", "--seed", "12", "--keep", "all")


def test_transactions_of_a_correct_cluster_are_valid(tmp_path: Path) -> None:
    """Commits and planned aborts over several partitions; readers of what is committed are not handed the aborted."""
    require("java")
    with Place(tmp_path) as place:
        assert place.run("run", *ASKED, timeout_s=RUN_S) == 0, place.out + place.err
        assert place.out.startswith("RESULT valid seed=12 acked=")
        place.assert_nothing_left(within_s=1.0)
    run = tmp_path / "results" / "latest"
    verdict = json.loads((run / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["reasons"]) == ("valid", [])
    rows = read_histories(run / "history").table.to_pylist()
    ends = Counter((row["f"], row["type"]) for row in rows if row["f"] in ("commit", "abort"))
    assert ends["commit", "ok"] >= 10 and ends["abort", "ok"] >= 1
    sends = [row for row in rows if row["f"] == "send"]
    assert all(row["op"] > 0 for row in sends)
    committed = {row["op"] for row in rows if (row["f"], row["type"]) == ("commit", "ok")}
    places = {op: {row["partition"] for row in sends if row["op"] == op} for op in committed}
    assert set(map(len, places.values())) == {3}
    isolated = {row["process"] for row in rows if row["f"] == "isolation"}
    assert isolated == {"readers-native", "final-confluent", "final-kafka-python"}
    asked = {row["op"] for row in rows if row["f"] == "commit"}
    aborted = {
        (row["partition"], offset)
        for row in sends
        if row["type"] == "ok" and row["op"] not in asked
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    read = {process: _read(rows, process) for process in (*isolated, "readers-confluent")}
    assert aborted and aborted <= read["readers-confluent"]
    assert not any(read[process] & aborted for process in isolated)


def _read(rows: list[dict[str, object]], process: str) -> set[tuple[object, int]]:
    """The places whose values a process was handed."""
    return {
        (row["partition"], offset)
        for row in rows
        if row["f"] == "poll" and row["process"] == process
        for offset in range(int(str(row["first_offset"])), int(str(row["last_offset"])) + 1)
    }
