"""Joins invocations and their completions into operations. Owns what makes a history malformed; judges no anomaly.

A process does one operation at a time: ``invoke``, then ``ok``, ``fail`` or ``info``. An operation without a completion
is ``info``. The sends of a completion replace those of its invocation. A send that the completion does not mention has
an unknown offset. A history that breaks these rules cannot be judged, nor one in which a value is sent twice: all
checks rely on each value having one writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verifier.operations.columns import codes_of, first_rows, starts_of_groups
from verifier.operations.model import (
    FUNCTIONS,
    INFO,
    INVOKE,
    OK,
    TYPE_NAMES,
    IntArray,
    OperationHistory,
)

#: The most problems of one kind that are listed; the others are only counted.
MOST_TOLD = 5
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations in the order of their invocation, and the values that they sent and read, as columns.

    - One row per operation: ``begin``, ``end``, ``type``, ``f`` and ``process``. ``begin`` and ``end`` are lines of the
      history; ``end`` is ``NEVER`` without a completion.
    - One row per send: ``sent_by`` (the operation), ``sent`` (the value) and ``sent_offset``; the ``read`` columns
      likewise. They are in the order of operations, and within one in the order of its micro-operations.
    - One row per key: ``keys`` has its code.
    - One row per value of a key: ``values`` has its code, ``key_of`` its key, and ``writer`` the operation that sent
      it, or -1.
    """

    history: OperationHistory
    begin: IntArray
    end: IntArray
    type: IntArray
    f: IntArray
    process: IntArray
    sent_by: IntArray
    sent: IntArray
    sent_offset: IntArray
    read_by: IntArray
    read: IntArray
    read_offset: IntArray
    keys: IntArray
    values: IntArray
    key_of: IntArray
    writer: IntArray
    problems: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.type)

    def __repr__(self) -> str:
        return f"Operations({len(self):,}, {len(self.values):,} values of {len(self.keys):,} keys)"

    @property
    def row(self) -> IntArray:
        """For each operation, its most informative line in the history: the completion, or else the invocation."""
        return np.where(self.end == NEVER, self.begin, self.end)

    def index(self, operation: int) -> int:
        """The number of an operation for people: its ``index``, or its line number if it has none."""
        row = int(self.row[operation])
        return int(self.history.index[row]) if self.history.index[row] >= 0 else int(self.history.line_number[row])


def pair(history: OperationHistory) -> Operations:
    """The operations of a history. ``problems`` lists everything that is malformed."""
    order = np.argsort(history.process, kind="stable")
    process, kind = history.process[order], history.type[order]
    begins = starts_of_groups([process])
    is_invoke = kind == INVOKE
    after_invoke = np.zeros(len(order), dtype=np.bool_)
    after_invoke[1:] = is_invoke[:-1] & ~begins[1:]
    completes = after_invoke & ~is_invoke
    same_f = np.ones(len(order), dtype=np.bool_)
    same_f[1:] = history.f[order][1:] == history.f[order][:-1]
    problems = [*history.problems, *_index_problems(history)]
    problems += _problems(history, order[~is_invoke & ~after_invoke], _without_invocation)
    problems += _problems(history, order[is_invoke & after_invoke], _still_open)
    problems += _problems(history, order[completes & ~same_f], _other_function)
    end_of = np.full(len(history), NEVER, dtype=np.int64)
    completed = np.flatnonzero(completes)
    end_of[order[completed - 1]] = order[completed]
    begin = np.flatnonzero(history.type == INVOKE)
    end = end_of[begin]
    done = end != NEVER
    kinds = np.full(len(begin), INFO, dtype=np.int64)
    kinds[done] = history.type[end[done]]
    operation_of = np.full(len(history), -1, dtype=np.int64)
    operation_of[begin] = np.arange(len(begin))
    operation_of[end[done]] = np.flatnonzero(done)
    return _with_values(history, begin, end, kinds, operation_of, problems)


def _with_values(
    history: OperationHistory,
    begin: IntArray,
    end: IntArray,
    kinds: IntArray,
    operation_of: IntArray,
    problems: list[str],
) -> Operations:
    sends, reads = history.sends, history.reads
    key_codes = np.concatenate([sends["key"], reads["key"]])
    value_codes = np.concatenate([sends["value"], reads["value"]])
    key, key_count = codes_of(key_codes)
    value, value_count = codes_of(key, value_codes)
    first = first_rows(value, value_count)
    sent_count = len(sends["key"])
    by = operation_of[sends["line"]]
    invoked = history.type[sends["line"]] == INVOKE
    kept, more = _chosen_sends(history, kinds, by, value[:sent_count], invoked)
    problems += more
    offset = np.where(invoked, -1, sends["offset"])[kept]
    by, sent = by[kept], value[:sent_count][kept]
    # lines that belong to no operation have been reported above
    read_by = operation_of[reads["line"]]
    known = read_by >= 0
    read_by, read, read_offset = read_by[known], value[sent_count:][known], reads["offset"][known]
    order = np.lexsort((sends["mop"][kept], by))
    by, sent, offset = by[order], sent[order], offset[order]
    read_order = np.argsort(read_by, kind="stable")
    writer = np.full(value_count, -1, dtype=np.int64)
    writer[sent[::-1]] = by[::-1]
    made = Operations(
        history=history,
        begin=begin,
        end=end,
        type=kinds,
        f=history.f[begin],
        process=history.process[begin],
        sent_by=by,
        sent=sent,
        sent_offset=offset,
        read_by=read_by[read_order],
        read=read[read_order],
        read_offset=read_offset[read_order],
        keys=key_codes[first_rows(key, key_count)],
        values=value_codes[first],
        key_of=key[first],
        writer=writer,
        problems=(),
    )
    problems += _sent_twice(made)
    object.__setattr__(made, "problems", tuple(problems))
    return made


def _chosen_sends(
    history: OperationHistory, kinds: IntArray, by: IntArray, value: IntArray, invoked: np.ndarray
) -> tuple[IntArray, list[str]]:
    """The sends that count (rows of ``sends``), and problems.

    All sends of completions count, and those of invocations that the completion does not mention.
    """
    completed = ~invoked & (by >= 0)
    count = int(value.max()) + 1 if len(value) else 1
    told = by * count + value
    in_completion = np.isin(told, told[completed])
    in_invocation = np.isin(told, told[invoked])
    silent = invoked & ~in_completion
    problems = _problems(history, np.unique(history.sends["line"][completed & ~in_invocation]), _send_not_invoked)
    ok = np.zeros(len(by), dtype=np.bool_)
    ok[silent] = kinds[by[silent]] == OK
    problems += _problems(history, np.unique(history.sends["line"][ok]), _send_omitted)
    return np.flatnonzero(completed | silent), problems


def _sent_twice(operations: Operations) -> list[str]:
    counts = np.bincount(operations.sent, minlength=len(operations.values))
    twice = np.flatnonzero(counts > 1)
    names = operations.history.names
    told = []
    for value in twice[:MOST_TOLD].tolist():
        indices = [operations.index(each) for each in operations.sent_by[operations.sent == value][:2].tolist()]
        told.append(
            f"{names.name(int(operations.values[value]))} is sent to key "
            f"{names.name(int(operations.keys[operations.key_of[value]]))} more than once, by operations "
            f"{indices[0]} and {indices[1]}: values must be unique"
        )
    return [*told, *_and_more(len(twice))]


def _index_problems(history: OperationHistory) -> list[str]:
    known = np.flatnonzero(history.index >= 0)
    indices = history.index[known]
    return _problems(history, known[1:][indices[1:] <= indices[:-1]], lambda h, row: f"index {h.index[row]} goes back")


def _problems(history: OperationHistory, rows: IntArray, words: object) -> list[str]:
    told = [f"line {history.line_number[row]}: {words(history, row)}" for row in rows[:MOST_TOLD].tolist()]  # type: ignore[operator]
    return [*told, *_and_more(len(rows))]


def _and_more(count: int) -> Iterator[str]:
    if count > MOST_TOLD:
        yield f"and {count - MOST_TOLD:,} more like this"


def _who(history: OperationHistory, row: int) -> str:
    return f"process {history.names.name(int(history.process[row]))}"


def _without_invocation(history: OperationHistory, row: int) -> str:
    return f"{_who(history, row)} completes ({TYPE_NAMES[history.type[row]]}) what it has not invoked"


def _still_open(history: OperationHistory, row: int) -> str:
    return f"{_who(history, row)} invokes an operation while its last one is open"


def _other_function(history: OperationHistory, row: int) -> str:
    return f"{_who(history, row)} completes {FUNCTIONS[history.f[row]]}, which is not what it invoked"


def _send_not_invoked(history: OperationHistory, row: int) -> str:
    return f"{_who(history, row)} completes a send that it did not invoke"


def _send_omitted(history: OperationHistory, row: int) -> str:
    return f"{_who(history, row)} completes with ok but does not mention a send that it invoked"
