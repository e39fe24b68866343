"""Every anomaly as files: one row per value, bounded, with what the verdict says of each; nothing stale is left."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.settings import settings as run_settings
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier.bounds import Bounds
from verifier.excuses.event_rows import EVENT
from verifier.excuses.expectation import ELECTION, RETRY
from verifier.places import Place
from verifier.telling import anomaly_files
from verifier.telling.anomaly_files import COLLECTED, INDEX, JUDGED, by_run, write
from verifier.verdict import Verdict


def table(*rows: dict[str, Any]) -> pa.Table:
    """Anomalies as a check reports them; what is not said is as for a lost value in ``t-0``."""
    usual = {
        "topic": "t",
        "partition": 0,
        "cause": None,
        "stream": 1,
        "sequence": 4,
        "offset": 7,
        "count": 1,
        "size": 1,
    }
    return pa.Table.from_pylist([{**usual, "detail": "{}", **each} for each in rows], schema=JUDGED)


def lost(count: int) -> Verdict:
    return decide(a_run(), audit(found("lost-write", count=count)), closing())


def in_words(run: str, excuse: str, event: Mapping[str, Any]) -> str:
    return f"{run}: {excuse} {event['epoch']}"


def written(directory: Path, check: str) -> list[dict[str, str]]:
    with (directory / f"{check}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_each_value_has_a_row(tmp_path: Path) -> None:
    """What stands for several is spread out: sequence, offset and the offsets of the detail move on, nothing else."""
    detail = json.dumps({"first_ack": 7, "reads": 2, "high_watermark": 50})
    write(
        tmp_path / "a", {"lost-write": table({"count": 3, "detail": detail}, {"sequence": 9, "offset": None})}, lost(4)
    )
    rows = written(tmp_path / "a", "lost-write")
    assert [(row["sequence"], row["offset"], row["count"]) for row in rows] == [
        ("4", "7", "1"), ("5", "8", "1"), ("6", "9", "1"), ("9", "", "1"),
    ]  # fmt: skip
    assert [json.loads(row["detail"]) for row in rows[:3]] == [
        {"first_ack": 7 + step, "reads": 2, "high_watermark": 50} for step in range(3)
    ]
    same = pyarrow.parquet.read_table(tmp_path / "a" / "lost-write.parquet")
    assert same["sequence"].to_pylist() == [4, 5, 6, 9]
    assert same.schema.names == [*COLLECTED.names, "allowed"] == list(rows[0])


def test_what_is_too_much_stays_in_ranges_and_says_so(tmp_path: Path) -> None:
    """Beyond the bound a row keeps its count and nothing is missing; of too many ranges the rest is left out."""
    many = table({"count": 8}, {"sequence": 20, "count": 5})
    write(tmp_path / "ranges", {"lost-write": many}, lost(13), longest=10)
    assert [row["count"] for row in written(tmp_path / "ranges", "lost-write")] == ["8", "5"]
    about = json.loads((tmp_path / "ranges" / INDEX).read_text())["checks"]["lost-write"]
    assert (about["one_row_per_value"], about["complete"], about["covered"], about["longest"]) == (False, True, 13, 10)
    write(tmp_path / "cut", {"lost-write": many}, lost(13), longest=1)
    about = json.loads((tmp_path / "cut" / INDEX).read_text())["checks"]["lost-write"]
    assert (about["rows"], about["covered"], about["anomalies"], about["complete"]) == (1, 8, 13, False)
    metadata = pyarrow.parquet.read_schema(tmp_path / "cut" / "lost-write.parquet").metadata
    assert json.loads(metadata[b"gapless.complete"]) is False


def test_files_say_what_is_allowed(tmp_path: Path) -> None:
    """The verdict's reason and the row's own event stand with each row that is excused, and with no other."""
    off = run_settings(idempotence=False, rate=0.0)
    verdict = decide(
        a_run(settings=off), audit(found("duplicate", "broker", excuse=RETRY), found("lost-write")), closing()
    )
    retried = {"cause": "broker", "excuse": RETRY, "event": "another retry"}
    duplicates = table(retried, {**retried, "partition": 3}, {"cause": "broker", "sequence": 9})
    write(tmp_path / "a", {"duplicate": duplicates, "lost-write": table({})}, verdict)
    first, elsewhere, unexcused = written(tmp_path / "a", "duplicate")
    assert first["allowed"].startswith("idempotence is off")
    assert first["allowed"].endswith("; another retry")
    assert (elsewhere["allowed"], unexcused["allowed"]) == ("", "")
    assert [row["allowed"] for row in written(tmp_path / "a", "lost-write")] == [""]


def test_each_row_has_the_election_that_excuses_it(tmp_path: Path) -> None:
    """Of two elections in one partition each row names its own; the rows without a reason are the forbidden ones."""
    acks_1 = run_settings(acks="1", idempotence=False, rate=0.0)
    elections = ("election of epoch 1 at offset 4", "election of epoch 2 at offset 20")
    losses = [replace(found("lost-write", count=3, excuse=ELECTION), event=each) for each in elections]
    verdict = decide(a_run(settings=acks_1), audit(*losses, found("lost-write", count=2)), closing())
    rows = table(
        {"count": 3, "excuse": ELECTION, "event": elections[0]},
        {"sequence": 20, "count": 3, "excuse": ELECTION, "event": elections[1]},
        {"sequence": 40, "count": 2},
    )
    write(tmp_path / "a", {"lost-write": rows}, verdict)
    allowed = [row["allowed"] for row in written(tmp_path / "a", "lost-write")]
    reason, _, _ = allowed[0].partition("; ")
    assert reason.startswith("acks=1: ")
    first, second = (f"{reason}; {each}" for each in elections)
    assert allowed == [first] * 3 + [second] * 3 + [""] * 2
    result = verdict.checks["lost-write"]
    assert (allowed.count(""), result.allowed_count) == (result.forbidden_count, 6)


def test_stale_files_go(tmp_path: Path) -> None:
    """A verification that finds less, or nothing, leaves nothing of the one before."""
    directory = tmp_path / "a"
    write(directory, {"lost-write": table({}), "duplicate": table({})}, lost(1))
    write(directory, {"lost-write": table({})}, lost(1))
    assert sorted(path.name for path in directory.iterdir()) == [INDEX, "lost-write.csv", "lost-write.parquet"]
    write(directory, {"lost-write": table()}, lost(0))
    assert not directory.exists()


def test_runs_are_kept_apart_and_sorted() -> None:
    """Rows of several runs become tables by run, named and in order."""
    final = a_run().final[0]
    one = Place("one", final, (1,), 0, False, (0,), Bounds(), -1)
    places = [one, replace(one, run="two", final=replace(final, partition=5))]
    columns = ("place", *COLLECTED.names[2:])
    rows = [(1, None, 2, 9, 9, 1, 1, "{}"), (0, None, 1, 4, 4, 1, 1, "{}"), (1, None, 2, 3, 3, 1, 1, "{}")]
    frame = pa.table(
        {name: pa.array([row[index] for row in rows], pa.string() if name in ("cause", "detail") else pa.int64())
         for index, name in enumerate(columns)}
        | {"excuse": [ELECTION, None, ELECTION], "event": [{"epoch": 3}, None, {"epoch": 2}]}
    )  # fmt: skip
    tables = by_run(frame, places, in_words)
    assert {name: each["event"].to_pylist() for name, each in tables.items()} == {
        "one": [None], "two": ["two: election 2", "two: election 3"],
    }  # fmt: skip
    assert {name: each["sequence"].to_pylist() for name, each in tables.items()} == {"one": [4], "two": [3, 9]}
    assert tables["two"]["partition"].to_pylist() == [5, 5]


@pytest.mark.integration
def test_spark_rows_become_tables(spark: Any) -> None:
    """The rows of each check come as they are, the first of each if there are too many in all."""
    from pyspark.sql import functions as F

    place = Place("run", a_run().final[0], (1,), 0, False, (0,), Bounds(), -1)
    told = {"duplicate": (5, 3, 4), "unseen": (7,)}
    rows = [
        {"check": check, "place": 0, "stream": 1, "sequence": at, "offset": at, "count": 1, "size": 1, "detail": "{}"}
        for check, ats in told.items()
        for at in ats
    ]
    # of a table Spark makes a frame by itself; for a list of rows it starts a process of Python
    none = {"cause": F.lit(None).cast("string"), "excuse": F.lit(None).cast("string")}
    frame = spark.createDataFrame(pa.Table.from_pylist(rows)).withColumns({**none, "event": F.lit(None).cast(EVENT)})

    def sequences(longest: int) -> dict[str, list[int | None]]:
        found = anomaly_files.collect(frame, list(told), len(rows), [place], in_words, longest)
        return {check: each["run"]["sequence"].to_pylist() for check, each in found.items()}

    assert sequences(longest=4) == {"duplicate": [3, 4, 5], "unseen": [7]}
    assert sequences(longest=2) == {"duplicate": [3, 4], "unseen": [7]}
