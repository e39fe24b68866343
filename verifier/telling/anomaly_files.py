"""Every anomaly of a run as files: ``anomalies/<check>.parquet`` and ``.csv``. Owns their columns, bounds and form.

A check's row may stand for ``count`` consecutive values, of which the first is described. In the files each value has a
row of its own: anyone who looks for one finds it. Sequence, offset and the offsets in ``detail`` move on with the
value. Only where that would make more than ``LONGEST`` rows do the rows stay as they are; ``index.json`` and the
Parquet metadata say which of the two it is, and whether anything is missing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from verifier.evidence.run_directory import write_json_atomic
from verifier.telling.reasons import reason_of
from verifier.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from verifier.places import Place

#: Rows of one check in one run, collected and written; more are counted and left out.
LONGEST = 500_000

INDEX = "index.json"

#: What the files have of each check; ``allowed`` is added when the verdict is known.
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("cause", pa.string()),
    pa.field("stream", pa.int64()),
    pa.field("sequence", pa.int64()),
    pa.field("offset", pa.int64()),
    pa.field("count", pa.int64()),
    pa.field("size", pa.int64()),
    pa.field("detail", pa.string()),
]
COLLECTED = pa.schema(_COLUMNS)

#: What is collected of each check: with the kind of event that excuses a row and the event in words, null if none does.
JUDGED = pa.schema([*_COLUMNS, pa.field("excuse", pa.string()), pa.field("event", pa.string())])

#: The words for an event, given the run's name, the kind of event and its fields.
Words = Callable[[str, str, Mapping[str, Any]], str]
_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    (name, "ascending") for name in ("topic", "partition", "stream", "sequence", "offset", "cause", "detail")
]

#: Numbers in an anomaly's ``detail`` that belong to the value itself and so move on with it; others are the same for
#: all.
_MOVING = frozenset(f"{end}_{source}" for end in ("first", "last") for source in ("ack", "log", "read"))


def collect(
    anomalies: DataFrame,
    checks: Sequence[str],
    rows: int,
    places: Sequence[Place],
    words: Words,
    longest: int = LONGEST,
) -> dict[str, dict[str, pa.Table]]:
    """All anomalies (with ``check``) of these checks, by check and run: sorted tables of the columns of ``JUDGED``.

    ``rows`` is how many there are. If they are more than ``longest``, at most that many of each check are collected,
    the first by partition, stream and sequence.
    """
    if rows <= longest:
        together = anomalies.toArrow()
        whose = together["check"].to_numpy()
        return {name: by_run(together.filter(pa.array(whose == name)), places, words) for name in checks}
    found = {}
    for name in checks:
        own = anomalies.filter(anomalies["check"] == name)
        first = own.orderBy("place", "stream", "sequence", "offset", "cause", "detail").limit(longest)
        found[name] = by_run(first.toArrow(), places, words)
    return found


def by_run(rows: pa.Table, places: Sequence[Place], words: Words) -> dict[str, pa.Table]:
    """Rows with ``place`` (an index of ``places``) and ``event`` (its fields) as tables with names, by run."""
    own = rows["place"].to_numpy()
    found: dict[str, pa.Table] = {}
    numbers: dict[str, list[int]] = {}
    for number in np.unique(own).tolist():
        numbers.setdefault(places[number].run, []).append(number)
    for run, its_own in numbers.items():
        chosen = np.flatnonzero(np.isin(own, its_own))
        part = rows.take(chosen)
        finals = [places[number].final for number in own[chosen].tolist()]
        columns: dict[str, Any] = {
            "topic": pa.array([final.topic for final in finals], pa.string()),
            "partition": pa.array([final.partition for final in finals], pa.int32()),
        } | {name: part[name].cast(COLLECTED.field(name).type) for name in COLLECTED.names[2:]}
        columns |= {"excuse": part["excuse"].cast(pa.string()), "event": _events(part, run, words)}
        found[run] = pa.table(columns, schema=JUDGED).sort_by(_ORDER)
    return found


def _events(rows: pa.Table, run: str, words: Words) -> pa.Array[Any]:
    """The event of each row in words. Rows are many and events few: each is put into words once."""
    known: dict[tuple[Any, ...], str] = {}

    def text(excuse: str | None, event: Mapping[str, Any] | None) -> str | None:
        if excuse is None or event is None:
            return None
        key = (excuse, *event.values())
        if key not in known:
            known[key] = words(run, excuse, event)
        return known[key]

    pairs = zip(rows["excuse"].to_pylist(), rows["event"].to_pylist(), strict=True)
    return pa.array([text(excuse, event) for excuse, event in pairs], pa.string())


def write(directory: Path, tables: Mapping[str, pa.Table], verdict: Verdict, longest: int = LONGEST) -> None:
    """Write ``directory`` whole; what an earlier verification left there is removed. None is made for no anomaly.

    ``tables`` are by check, with the columns of ``JUDGED``. Raises ``OSError``.
    """
    shutil.rmtree(directory, ignore_errors=True)
    found = {name: table for name, table in tables.items() if table.num_rows}
    if not found:
        return
    directory.mkdir(parents=True)
    index: dict[str, Any] = {}
    for check, table in found.items():
        rows, about = _finished(check, table, verdict, longest)
        metadata = {f"gapless.{key}": json.dumps(value) for key, value in about.items()}
        pyarrow.parquet.write_table(rows.replace_schema_metadata(metadata), directory / f"{check}.parquet")
        pyarrow.csv.write_csv(rows, directory / f"{check}.csv")
        index[check] = about
    write_json_atomic(directory / INDEX, {"columns": [*COLLECTED.names, "allowed"], "checks": index})


def _finished(check: str, table: pa.Table, verdict: Verdict, longest: int) -> tuple[pa.Table, dict[str, Any]]:
    """The rows as they are written, and what is said about them."""
    rows = int(np.sum(table["count"].to_numpy()))
    expanded = rows <= longest
    written = _expanded(table) if expanded else table.slice(0, longest)
    result = verdict.checks.get(check)
    counted = rows if result is None else result.count
    covered = int(np.sum(written["count"].to_numpy()))
    about = {
        "check": check,
        "anomalies": counted,
        "rows": written.num_rows,
        "covered": covered,
        "complete": covered >= counted,
        "one_row_per_value": expanded,
        "longest": longest,
    }
    allowed = pa.array(allowances(check, written, verdict), pa.string())
    return written.select(COLLECTED.names).append_column("allowed", allowed), about


def _expanded(table: pa.Table) -> pa.Table:
    """One row for each value."""
    counts = table["count"].to_numpy()
    if not np.any(counts > 1):
        return table
    owner = np.repeat(np.arange(counts.size), counts)
    step = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = table.take(owner)
    for name in ("sequence", "offset"):
        moved = pa.compute.add(rows[name], pa.array(step, pa.int64()))
        rows = rows.set_column(rows.schema.get_field_index(name), COLLECTED.field(name), moved)
    details = [_moved(text, by) for text, by in zip(rows["detail"].to_pylist(), step.tolist(), strict=True)]
    rows = rows.set_column(rows.schema.get_field_index("detail"), COLLECTED.field("detail"), [details])
    ones = pa.array(np.ones(owner.size, dtype=np.int64))
    return rows.set_column(rows.schema.get_field_index("count"), COLLECTED.field("count"), ones)


def _moved(detail: str | None, by: int) -> str | None:
    if not by or not detail:
        return detail
    return json.dumps(moved(json.loads(detail), by), separators=(",", ":"))


def moved(detail: Mapping[str, Any], by: int) -> dict[str, Any]:
    """The detail of a value that comes that many values later in the same anomaly."""
    return {name: value + by if name in _MOVING and value is not None else value for name, value in detail.items()}


def allowances(check: str, rows: pa.Table, verdict: Verdict) -> list[str | None]:
    """Why each row (``JUDGED``) is allowed, or None: the verdict's reason for its like, and the row's own event."""
    result = verdict.checks.get(check)
    reasons = {
        (each.found.topic, each.found.partition, each.found.cause, each.found.excuse): reason_of(each)
        for each in (() if result is None else result.examples)
    }
    columns: list[list[Any]] = [rows[name].to_pylist() for name in ("topic", "partition", "cause", "excuse")]
    said = (reasons.get(key) for key in zip(*columns, strict=True))
    events = rows["event"].to_pylist()
    return [f"{why}; {event}" if why and event else why for why, event in zip(said, events, strict=True)]
