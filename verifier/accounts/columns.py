"""Sums and extremes over columns of a history's rows, for its account. Pure, vectorized; keeps and judges nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from verifier.outcomes import error_name

#: Topic and partition.
Where = tuple[str, int]

#: pyarrow's functions take and give more kinds of value than their stubs can say.
_compute: Any = pyarrow.compute


def partitions_of(rows: pa.Table) -> set[Where]:
    """The partitions that rows are about."""
    return {(each["topic"], each["partition"]) for each in distinct(rows, ["topic", "partition"])}


def by_key(rows: pa.Table, keys: list[str]) -> pa.TableGroupBy:
    """The rows grouped by these columns, in the caller's thread: rows come in parts, too few to share out."""
    return rows.group_by(keys, use_threads=False)


def distinct(rows: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    """Each combination of these columns once."""
    return by_key(rows, keys).aggregate([]).to_pylist()


def without_offset(polls: pa.Table) -> int:
    """How many of these rows have no offset, or end before they begin."""
    first, last = column(polls, "first_offset"), column(polls, "last_offset")
    return int(np.count_nonzero((first < 0) | (last < first)))


def without_value(polls: pa.Table) -> int:
    """How many of these rows have neither a stream with a sequence for each offset nor an error."""
    first, last = column(polls, "first_sequence"), column(polls, "last_sequence")
    as_long = last - first == column(polls, "last_offset") - column(polls, "first_offset")
    told = (column(polls, "stream") >= 0) & (first >= 0) & as_long
    unreadable = polls["error"].is_valid().to_numpy().astype(np.bool_)
    return int(np.count_nonzero(told == unreadable))


def without_times(rows: pa.Table) -> NDArray[np.bool_]:
    """Which of these rows have a time below 0, or an outcome that was known before the row began."""
    begun, ended = column(rows, "invoke_ns"), column(rows, "complete_ns")
    wrong: NDArray[np.bool_] = (begun < 0) | (ended < begun)
    return wrong


def lengths(table: pa.Table) -> NDArray[np.int64]:
    """How many values each row is about, as ``history.values_of`` counts them."""
    first, last = column(table, "first_sequence"), column(table, "last_sequence")
    without_sequence = first < 0
    first = np.where(without_sequence, column(table, "first_offset"), first)
    last = np.where(without_sequence, column(table, "last_offset"), last)
    lengths: NDArray[np.int64] = np.where((first >= 0) & (last >= first), last - first + 1, 0)
    return lengths


def column(table: pa.Table, name: str) -> NDArray[np.int64]:
    found: NDArray[np.int64] = table[name].to_numpy().astype(np.int64, copy=False)
    return found


def grouped(table: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    """Rows and values by key."""
    counted = table.select(keys).append_column("values", pa.array(lengths(table)))
    return by_key(counted, keys).aggregate([("values", "sum"), ("values", "count")]).to_pylist()


def by_partition(rows: pa.Table) -> dict[Where, int]:
    """The values of these rows by partition."""
    return {(each["topic"], each["partition"]): each["values_sum"] for each in grouped(rows, ["topic", "partition"])}


def errors_of(sends: pa.Table) -> Counter[tuple[str, str]]:
    """Values of ``send`` rows by outcome and the name of the error; acknowledgements with an error count, too."""
    told = sends.filter(_compute.or_(_compute.not_equal(sends["type"], "ok"), _compute.is_valid(sends["error"])))
    found: Counter[tuple[str, str]] = Counter()
    for each in grouped(told, ["type", "error"]):
        found[each["type"], error_name(each["error"] or "")] += each["values_sum"]
    return found


def greatest(rows: pa.Table, name: str) -> dict[Where, int]:
    """The greatest value of a column, by partition."""
    grouped = by_key(rows, ["topic", "partition"]).aggregate([(name, "max")])
    return {(each["topic"], each["partition"]): each[f"{name}_max"] for each in grouped.to_pylist()}


def earliest(rows: pa.Table, name: str) -> dict[Where, int]:
    """The value of a column in the first row of each partition."""
    grouped = by_key(rows, ["topic", "partition"]).aggregate([(name, "first")])
    return {(each["topic"], each["partition"]): each[f"{name}_first"] for each in grouped.to_pylist()}


def deleted_below(rows: pa.Table) -> dict[Where, int]:
    """Up to where records were to be deleted; a request of unknown outcome may have been carried out."""
    asked = _compute.and_(_compute.equal(rows["f"], "delete"), _compute.not_equal(rows["type"], "fail"))
    return greatest(rows.filter(asked), "first_offset")
