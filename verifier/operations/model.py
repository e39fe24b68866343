"""The model of an operation history, as columns with one row per line, per send, and per value read.

Owns the model and how one operation is checked. Does not own the syntax of files (``verifier.operations.reading``), or
whether the operations fit together (``verifier.operations.pairing``). An operation is a mapping with ``index``,
``time`` (ns), ``process``, ``type`` (invoke, ok, fail, info), ``f``, ``value``, ``error`` and ``rebalance-log``, as in
Jepsen's kafka workload. ``HistoryBuilder`` takes operations one by one and stores integers: a key or value that is not
an integer below 2^62 gets a code below -2^62 (``Names``). Lines of the nemesis are skipped. An operation that makes no
sense raises ``OperationsError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.operations.codes import PLAIN, Names

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

INVOKE, OK, FAIL, INFO = range(4)
TYPES = {"invoke": INVOKE, "ok": OK, "fail": FAIL, "info": INFO}
SEND, POLL, TXN, ASSIGN, SUBSCRIBE, CRASH, DEBUG = range(7)
FUNCTIONS = ("send", "poll", "txn", "assign", "subscribe", "crash", "debug-topic-partitions")
_FUNCTION_CODES = {name: code for code, name in enumerate(FUNCTIONS)}
TYPE_NAMES = tuple(TYPES)

NO_OFFSET = -1
MOST_OFFSET = 2**63 - 1
#: After this many operations, the rows so far become columns. This bounds the number of Python objects.
CHUNK = 20_000
#: The first and last element of a list that represents a map: keys and values alternate between them.
MAP, MAP_END = "{", "}"


class OperationsError(ValueError):
    """A file is not an operation history. The message names the file and the line."""


@dataclass(frozen=True, slots=True)
class OperationHistory:
    """All lines of a history in order, without those of the nemesis. The columns of each table have the same length.

    The columns from ``index`` to ``empty`` have one row per line. ``sends`` and ``reads`` have one row per value, in
    the order within the operation: ``line`` is a row of the former columns, and ``offset`` is -1 if it is unknown.
    ``listed`` has the keys of assign and subscribe, and ``rebalanced`` those of rebalance logs, both as (line, key).
    """

    name: str
    names: Names
    index: IntArray
    time: IntArray
    process: IntArray
    type: IntArray
    f: IntArray
    line_number: IntArray
    error: IntArray
    seeks: BoolArray
    empty: BoolArray  # the operation has no value, or an empty one
    sends: Mapping[str, IntArray]
    reads: Mapping[str, IntArray]
    listed: Mapping[str, IntArray]
    rebalanced: Mapping[str, IntArray]
    skipped: int = 0
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.type)

    def __repr__(self) -> str:
        return f"OperationHistory({self.name}, {len(self):,} lines)"


_LINE = ("index", "time", "process", "type", "f", "line_number", "error", "seeks", "empty")
_VALUE = ("line", "mop", "key", "value", "offset")
_KEY = ("line", "key")


class _Table:
    """Collects rows and turns them into int64 columns, chunk by chunk."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.rows: list[tuple[int, ...]] = []
        self._parts: list[IntArray] = []

    def flush(self) -> None:
        if self.rows:
            self._parts.append(np.array(self.rows, dtype=np.int64))
            self.rows.clear()

    def finish(self) -> dict[str, IntArray]:
        self.flush()
        whole = np.concatenate(self._parts) if self._parts else np.zeros((0, len(self.columns)), dtype=np.int64)
        return {name: np.ascontiguousarray(whole[:, column]) for column, name in enumerate(self.columns)}


@dataclass(slots=True)
class HistoryBuilder:
    """Builds a history from operations in order. ``json_keys``: keys that look like integers become integers.

    JSON needs this, because the keys of its objects are always strings.
    """

    name: str
    json_keys: bool = False
    names: Names = field(default_factory=Names)
    skipped: int = 0
    _lines: _Table = field(default_factory=lambda: _Table(_LINE))
    _sends: _Table = field(default_factory=lambda: _Table(_VALUE))
    _reads: _Table = field(default_factory=lambda: _Table(_VALUE))
    _listed: _Table = field(default_factory=lambda: _Table(_KEY))
    _rebalanced: _Table = field(default_factory=lambda: _Table(_KEY))
    _count: int = 0

    def add_all(self, operations: Iterable[tuple[int, Any]]) -> None:
        """Adds (line number, operation) pairs. Raises ``OperationsError``."""
        for number, operation in operations:
            try:
                self._add(number, operation)
            except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
                if isinstance(error, OperationsError):
                    raise
                raise OperationsError(f"{self.name}:{number}: {error}") from error

    def finish(self, problems: Sequence[str] = ()) -> OperationHistory:
        """The history of all operations that were added."""
        tables = [each.finish() for each in (self._lines, self._sends, self._reads, self._listed, self._rebalanced)]
        lines, sends, reads, listed, rebalanced = tables
        seeks, empty = lines.pop("seeks").astype(np.bool_), lines.pop("empty").astype(np.bool_)
        return OperationHistory(
            self.name, self.names, **lines, seeks=seeks, empty=empty, sends=sends, reads=reads, listed=listed,
            rebalanced=rebalanced, skipped=self.skipped, problems=tuple(problems),
        )  # fmt: skip

    def _add(self, number: int, operation: Any) -> None:
        operation = _mapping(operation)
        if operation is None:
            raise ValueError("an operation is a map with process, type, f and value")
        process = operation.get("process")
        if process == "nemesis":
            self.skipped += 1
            return
        type_, function = operation.get("type"), operation.get("f")
        # a file may have any value here, even one that is not hashable
        kind = TYPES.get(type_) if isinstance(type_, str) else None
        f = _FUNCTION_CODES.get(function) if isinstance(function, str) else None
        if process is None or kind is None or f is None:
            raise ValueError(_problem_with(operation))
        index, time, value = operation.get("index"), operation.get("time"), operation.get("value")
        line, error = self._count, operation.get("error")
        self._lines.rows.append(
            (
                _number(index, "index"),
                _number(time, "time"),
                process if type(process) is int and -PLAIN < process < PLAIN else self.names.code(process, "process"),
                kind,
                f,
                number,
                0 if error is None else self.names.code(text_of(error)),
                operation.get("seek-to-beginning?") is True,
                not value,
            )
        )
        if value:
            if f <= TXN:
                self._mops(line, kind, value)
            elif f <= SUBSCRIBE:
                self._listed.rows.extend((line, self._key(key)) for key in _sequence(value, "the keys"))
        log = operation.get("rebalance-log")
        if log:
            for event in _sequence(log, "rebalance-log"):
                keys = (_mapping(event) or {}).get("keys") or ()
                self._rebalanced.rows.extend((line, self._key(key)) for key in keys)
        self._count += 1
        if self._count % CHUNK == 0:
            for table in (self._lines, self._sends, self._reads, self._listed, self._rebalanced):
                table.flush()

    def _mops(self, line: int, kind: int, value: Any) -> None:
        code, sends, reads = self.names.code, self._sends.rows, self._reads.rows
        for position, mop in enumerate(_sequence(value, "value")):
            name = mop[0]
            if name == "send":
                _, key, sent = mop
                key = self._key(key)
                offset = NO_OFFSET
                if type(sent) is list:
                    told, sent = sent
                    offset = told if type(told) is int and 0 <= told <= MOST_OFFSET else _offset(told)
                sends.append(
                    (
                        line,
                        position,
                        key,
                        sent if type(sent) is int and abs(sent) < PLAIN else code(sent, "value"),
                        offset,
                    )
                )
            elif name == "poll":
                if len(mop) == 1 or mop[1] is None:
                    continue
                if kind == INVOKE:
                    raise ValueError("an invocation cannot have read anything yet")
                polled = _mapping(mop[1])
                if polled is None:
                    raise ValueError(f"a poll's result is a map of keys to [[offset value] ...], not {mop[1]!r:.60}")
                for key, pairs in polled.items():
                    known = self._key(key)
                    for told, got in pairs:
                        offset = told if type(told) is int and 0 <= told <= MOST_OFFSET else _offset(told)
                        reads.append(
                            (
                                line,
                                position,
                                known,
                                got if type(got) is int and abs(got) < PLAIN else code(got, "value"),
                                offset,
                            )
                        )
            else:
                raise ValueError(f"{name!r:.60} is not a micro-operation (send or poll)")

    def _key(self, key: Any) -> int:
        if self.json_keys and type(key) is str and (key.isdecimal() or (key[:1] == "-" and key[1:].isdecimal())):
            key = int(key)
        return self.names.code(key, "key")


def _mapping(value: Any) -> dict[Any, Any] | None:
    """The value as a dict: it is one, or a list of keys and values between ``MAP`` and ``MAP_END``; else None.

    Raises ``ValueError`` if a key repeats.
    """
    if type(value) is dict:
        return value
    if type(value) is list and value and value[0] == MAP and value[-1] == MAP_END:
        made = dict(zip(value[1:-1:2], value[2:-1:2], strict=True))
        if 2 * len(made) + 2 != len(value):
            raise ValueError("a map has the same key twice")
        return made
    return None


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, frozenset):
        return tuple(value)
    if not isinstance(value, list | tuple) or (value and value[0] == MAP):
        raise ValueError(f"{what} must be a vector, not {value!r:.60}")
    return value


def _number(value: Any, what: str) -> int:
    """The value as an int64; -1 for None. Raises ``ValueError`` for anything else."""
    if value is None:
        return -1
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"{what} must be an integer, not {value!r:.60}")
    return value


def _offset(value: Any) -> int:
    if value is None:
        return NO_OFFSET
    if type(value) is not int or not 0 <= value <= MOST_OFFSET:
        raise ValueError(f"{value!r:.60} is not an offset")
    return value


def _problem_with(operation: Mapping[Any, Any]) -> str:
    for field_name, known in (("process", None), ("type", TYPE_NAMES), ("f", FUNCTIONS)):
        value = operation.get(field_name)
        if value is None:
            return f"the operation has no {field_name}"
        if known is not None and value not in known:
            return f"{field_name} {value!r:.60} is unknown; it is one of {', '.join(known)}"
    return "no operation"


def text_of(value: Any) -> str:
    """An error's value as one line of text; it can have any type."""
    if isinstance(value, str):
        return " ".join(value.split())
    found = _mapping(value)
    if found is not None:
        return "{" + ", ".join(f"{text_of(key)} {text_of(each)}" for key, each in found.items()) + "}"
    if isinstance(value, list | tuple):
        return " ".join(map(text_of, value))
    return "nil" if value is None else str(value)
