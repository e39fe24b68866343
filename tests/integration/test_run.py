"""``gapless run`` from end to end where something is wrong: red where the cluster is, unknown where the run is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest

from loadgen.command import LOCUST
from loadgen.settings import PROCESS_ENV
from tests.support.histories import read_histories
from tests.support.leftovers import Place
from tests.support.require import require
from verifier.evidence.sequenced_value import SENTINEL_STREAM

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: A machine that does much else may take this long for what needs one minute.
RUN_S = 480.0


def _newest(place: Place) -> Path:
    latest = place.directory / "results" / "latest"
    runs = [path for path in (place.directory / "results" / "run").iterdir() if path.is_dir()]
    assert [latest.resolve()] == [path.resolve() for path in runs]
    return latest


def test_a_broker_that_forgets_what_it_acknowledged_is_found(tmp_path: Path) -> None:
    """The verifier names lost-write, shows one lost record and where it should stand; exit 1."""
    require("java")
    with Place(tmp_path) as place:
        # some 20 of 2,000 batches: seldom a sentinel among them, for which the final read would wait half a minute
        arguments = ["--defect", "lose-acked:0.01", "--faults", "none", "--time-limit", "6", "--rate", "500"]
        status = place.run("run", *arguments, "--seed", "12", timeout_s=RUN_S)
        assert status == 1, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT invalid seed=12 ")
        assert "lost-write" in place.out.splitlines()[0]
        assert "--defect lose-acked:0.01" in place.out
        run = _newest(place)
        found = json.loads((run / "verdict.json").read_text())["checks"]["lost-write"]
        assert found["count"] > 0 and found["examples"]
        example = found["examples"][0]
        assert {"stream", "sequence", "offset"} <= example.keys() and example["text"] and example["context"]
        assert "lost-write" in (run / "summary.md").read_text()
        failures = ET.parse(run / "junit.xml").getroot().findall(".//failure")
        assert failures


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        # Producers keep what they have for longer than the faults take: no response passes that could be dropped.
        (
            "--faults drop-response --time-limit 12 --rate 1 --partitions 1 --producer-config linger.ms=18000",
            "ineffective: drop-response never bit",
        ),
        # No record is that small.
        ("--faults none --time-limit 8 --topic-config max.message.bytes=100", "nothing was acknowledged"),
    ],
    ids=["faults-that-do-not-bite", "nothing-acknowledged"],
)
def test_a_run_that_shows_nothing_is_unknown(tmp_path: Path, arguments: str, reason: str) -> None:
    """Neither a right nor a wrong cluster is proven by it: exit 2, with the reason."""
    require("java")
    with Place(tmp_path) as place:
        status = place.run("run", *arguments.split(), "--seed", "14", timeout_s=RUN_S)
        assert status == 2, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT unknown seed=14 "), place.out
        verdict = json.loads((_newest(place) / "verdict.json").read_text())
        assert verdict["verdict"] == "unknown"
        assert reason in verdict["reasons"], verdict["reasons"]
        assert sum(check["count"] for check in verdict["checks"].values()) == 0


@pytest.mark.full
@pytest.mark.parametrize("client", ["native", "confluent"])
def test_a_killed_load_process_makes_nothing_a_failure(tmp_path: Path, client: str) -> None:
    """kill -9 of one of two producers' processes: the other goes on to the end, the run is judged, and of the killed
    one's records each is known or unknown, none failed, none a phantom."""
    require("java")
    with Place(tmp_path) as place:
        arguments = ["--time-limit", "24", "--faults", "none", "--load-processes", "2", "--client", client]
        owner = place.start("run", *arguments, "--seed", "15")
        place.wait_for("enough", RUN_S, lambda place: "enough" if _told(place, "producers-2", "acked") > 2000 else "")
        (killed,) = [process for process in place.processes() if _is_load(process, "producers-2")]
        killed.kill()
        assert owner.wait(RUN_S) == 2, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        run = _newest(place)
        spans = {each["name"]: each for each in json.loads((run / "run.json").read_text())["phases"]}
        assert spans["chaos"]["end_ns"] - spans["chaos"]["start_ns"] > 20e9
        verdict = json.loads((run / "verdict.json").read_text())
        told = [reason for reason in verdict["reasons"] if "load process" in reason]
        assert told == ["load process producers-2 died (exit status -9)"], verdict["reasons"]
        assert sum(check["count"] for check in verdict["checks"].values()) == 0
        rows = read_histories(run / "history").table.to_pylist()
        # its last half second is not in its history, and was read: reserved, hence unknown
        assert _accounted(rows, "producers-1") == _reserved(rows, "producers-1")
        lost = _reserved(rows, "producers-2") - _accounted(rows, "producers-2")
        read = _sequences(
            row
            for row in rows
            if (row["f"], row["process"]) == ("poll", "final-confluent") and row["stream"] < SENTINEL_STREAM
        )
        assert lost and lost & read
        assert {row["type"] for row in rows if row["process"] == "producers-2" and row["f"] == "send"} == {"ok"}
        assert read <= _reserved(rows, "producers-1") | _reserved(rows, "producers-2")


@pytest.mark.full
@pytest.mark.parametrize("client", ["native", "confluent"])
def test_killed_readers_end_the_load_and_what_they_had_not_told_counts_for_nothing(tmp_path: Path, client: str) -> None:
    """kill -9 of the readers' processes: with nobody to read, nothing is broken any more; the producers finish in
    order, and the run is judged. The readers' history breaks off, and no record is missed for being absent from it."""
    require("java")
    with Place(tmp_path) as place:
        arguments = ["--time-limit", "60", "--faults", "none", "--client", client]
        owner = place.start("run", *arguments, "--seed", "16")
        names = ("readers-confluent", "readers-native")
        enough = lambda place: "enough" if all(_told(place, name, "read") > 2000 for name in names) else ""  # noqa: E731
        place.wait_for("enough", RUN_S, enough)
        killed = [process for process in place.processes() if any(_is_load(process, name) for name in names)]
        assert len(killed) == 2
        for process in killed:
            process.kill()
        assert owner.wait(RUN_S) == 2, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        run = _newest(place)
        spans = {each["name"]: each for each in json.loads((run / "run.json").read_text())["phases"]}
        assert spans["chaos"]["end_ns"] - spans["chaos"]["start_ns"] < 50e9
        verdict = json.loads((run / "verdict.json").read_text())
        assert verdict["reasons"] == [f"load process {name} died (exit status -9)" for name in names]
        assert sum(check["count"] for check in verdict["checks"].values()) == 0
        histories = read_histories(run / "history")
        assert [each.process for each in histories.files if not each.closed] == list(names)
        rows = histories.table.to_pylist()
        # what they had read and not written down is unknown, as is what they would have read: none of it is a failure
        assert {row["type"] for row in rows if row["process"] in names and row["f"] == "poll"} == {"ok"}
        *live, final, other = (
            _sequences(row for row in rows if row["process"] == process and row["stream"] in range(SENTINEL_STREAM))
            for process in (*names, "final-confluent", "final-kafka-python")
        )
        assert all(each and each < final for each in live) and other == final
        assert final == _accounted(rows, "producers", "ok")
        assert _reserved(rows, "producers") == _accounted(rows, "producers")


def _is_load(process: psutil.Process, name: str) -> bool:
    try:
        return LOCUST in process.cmdline()[:3] and process.environ().get(PROCESS_ENV) == name
    except psutil.Error:
        return False


def _told(place: Place, process: str, what: str) -> int:
    """How many records a load process says were ``acked`` or ``read`` so far."""
    found = list(place.directory.glob(f"results/run/*/loadgen/{process}.status.json"))
    return int(json.loads(found[0].read_text())[f"total_{what}"]) if found else 0


def _sequences(rows: Iterable[dict[str, Any]]) -> set[tuple[int, int]]:
    return {
        (row["stream"], sequence) for row in rows for sequence in range(row["first_sequence"], row["last_sequence"] + 1)
    }


def _reserved(rows: list[dict[str, Any]], process: str) -> set[tuple[int, int]]:
    return _sequences(row for row in rows if row["process"] == process and row["f"] == "reserve")


def _accounted(rows: list[dict[str, Any]], process: str, *types: str) -> set[tuple[int, int]]:
    """Of what a process says how it went; of some outcomes alone, if they are named."""
    told = (row for row in rows if row["process"] == process and row["f"] == "send")
    return _sequences(row for row in told if not types or row["type"] in types)


@pytest.mark.full
def test_a_load_that_dies_is_unknown_and_what_it_left_is_judged(tmp_path: Path) -> None:
    """kill -9 of the producers: exit 2 with the reason; healed, read to the end and verified all the same."""
    require("java")
    with Place(tmp_path) as place:
        owner = place.start("run", "--time-limit", "30", "--faults", "none", "--seed", "13")
        place.wait_for("chaos  10/30 s", RUN_S)
        lines = {process: process.cmdline() for process in place.processes()}
        (producers,) = [process for process, line in lines.items() if "ProducerUser" in line and LOCUST in line[:3]]
        producers.kill()
        assert owner.wait(RUN_S) == 2, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        verdict = json.loads((_newest(place) / "verdict.json").read_text())
        told = [reason for reason in verdict["reasons"] if "load process producers" in reason]
        assert told == ["load process producers died (exit status -9)"], verdict["reasons"]
        # the last second of its history may be lost with it: what was read is at least what it had written down
        assert verdict["stats"]["read"] >= verdict["stats"]["acked"] > 0
        assert sum(check["count"] for check in verdict["checks"].values()) == 0
