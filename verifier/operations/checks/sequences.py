"""The checks of order: within one operation, and between successive operations of a process on one key.

Owns these checks. Does not own the derived order of the log (``verifier.operations.versions``). The distance of two
values is the difference of their indices in the key's log. If it is above 1, values were skipped. If it is below 1, the
process went back, or stayed at the same place. If one of the values has no place in the log, the distance is unknown,
and the check finds nothing.

An example: the log of key k has 5, 6, 8 and 9 at the offsets 0, 1, 2 and 4 (3 is a marker), so their indices are 0, 1,
2 and 3. Process 0 polls three times::

    history             span: first, last    before    distance: index of first - index of the previous last
    A  {k [[0 5] [1 6]]}       5, 6          none
    B  {k [[4 9]]}             9, 9          A         3 - 1 =  2, above 1: poll-skip by B, which skipped 8
    C  {k [[2 8]]}             8, 8          B         2 - 3 = -1, below 1: nonmonotonic-poll by C

Within A, the distance from 5 to 6 is 1, as it must be: neither int-poll-skip nor int-nonmonotonic-poll.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.operations.columns import starts_of_groups
from verifier.operations.findings import Findings, findings
from verifier.operations.model import ASSIGN, FAIL, INFO, INVOKE, OK, SUBSCRIBE, BoolArray, IntArray
from verifier.operations.pairing import NEVER, Operations
from verifier.operations.versions import Versions


@dataclass(frozen=True, slots=True)
class _SequenceSpans:
    """For each operation and key: the first and last value that it sent or read. Sorted by process, key and time."""

    operation: IntArray
    key: IntArray
    first: IntArray
    last: IntArray
    before: IntArray  # the row of the previous span that counts; -1 if there is none


def internal_polls(operations: Operations, versions: Versions) -> list[Findings]:
    """int-poll-skip and int-nonmonotonic-poll: values of one operation. Keys in its rebalance log are exempt."""
    lines, keys = operations.history.rebalanced["line"], operations.history.rebalanced["key"]
    rebalanced = _pairs(operations, lines, keys)
    return _internal(operations, versions, operations.read_by, operations.read, "poll", rebalanced)


def internal_sends(operations: Operations, versions: Versions) -> list[Findings]:
    """int-send-skip and int-nonmonotonic-send: values that one operation sent to a key."""
    nothing = np.zeros(0, dtype=np.int64)
    return _internal(operations, versions, operations.sent_by, operations.sent, "send", nothing)


def polls(operations: Operations, versions: Versions) -> list[Findings]:
    """poll-skip and nonmonotonic-poll: an operation's first polled value against the last one of an earlier one."""
    spans = _spans(operations, operations.read_by, operations.read, np.array([OK]))
    spans = _still_assigned(operations, spans)
    return _external(operations, versions, spans, "poll-skip", "nonmonotonic-poll")


def sends(operations: Operations, versions: Versions) -> list[Findings]:
    """nonmonotonic-send: an operation's first value sent to a key against the last one of an earlier operation."""
    kept = operations.type[operations.sent_by] != FAIL
    spans = _spans(operations, operations.sent_by[kept], operations.sent[kept], np.array([OK, INFO]))
    return _external(operations, versions, spans, None, "nonmonotonic-send")


def _internal(
    operations: Operations, versions: Versions, by: IntArray, value: IntArray, what: str, exempt: IntArray
) -> list[Findings]:
    key = operations.key_of[value]
    order = np.lexsort((np.arange(len(by)), key, by))
    by, value, key = by[order], value[order], key[order]
    follows = np.flatnonzero(~starts_of_groups([by, key]))
    if len(exempt):
        follows = follows[~np.isin(by[follows] * len(operations.keys) + key[follows], exempt)]
    delta = _distance(versions, value[follows - 1], value[follows])
    found = []
    for name, wrong in ((f"int-{what}-skip", delta > 1), (f"int-nonmonotonic-{what}", delta < 1)):
        rows = follows[wrong]
        found.append(
            findings(
                name,
                key[rows],
                value=value[rows],
                other=value[rows - 1],
                operation=by[rows],
                delta=delta[wrong],
                offset=_offset(versions, key[rows], value[rows]),
            )
        )
    return found


def _external(
    operations: Operations, versions: Versions, spans: _SequenceSpans, skip: str | None, back: str
) -> list[Findings]:
    rows = np.flatnonzero(spans.before >= 0)
    before = spans.before[rows]
    delta = _distance(versions, spans.last[before], spans.first[rows])
    found = []
    for name, wrong in ((skip, delta > 1), (back, delta < 1)):
        if name is None:
            continue
        chosen, earlier = rows[wrong], before[wrong]
        found.append(
            findings(
                name,
                spans.key[chosen],
                value=spans.first[chosen],
                other=spans.last[earlier],
                operation=spans.operation[chosen],
                earlier=spans.operation[earlier],
                delta=delta[wrong],
                offset=_offset(versions, spans.key[chosen], spans.first[chosen]),
            )
        )
    return found


def _distance(versions: Versions, before: IntArray, after: IntArray) -> IntArray:
    """The distance from ``before`` to ``after`` in indices. An unknown distance counts as 1, which is legal."""
    from_index, to_index = versions.place[before], versions.place[after]
    return np.where((from_index >= 0) & (to_index >= 0), to_index - from_index, 1)


def _offset(versions: Versions, key: IntArray, value: IntArray) -> IntArray:
    offsets: IntArray = versions.slot_offset[versions.key_start[key] + versions.place[value]]
    return offsets


def _spans(operations: Operations, by: IntArray, value: IntArray, counting: IntArray) -> _SequenceSpans:
    """The spans of all operations. ``before`` is the newest earlier span whose operation has a type in ``counting``."""
    key = operations.key_of[value]
    order = np.lexsort((np.arange(len(by)), key, by))
    by, value, key = by[order], value[order], key[order]
    starts = starts_of_groups([by, key])
    begins, ends = np.flatnonzero(starts), np.flatnonzero(np.append(starts[1:], True)[: len(starts)])
    operation, key, first, last = by[begins], key[begins], value[begins], value[ends]
    process = operations.process[operation]
    order = np.lexsort((operations.row[operation], key, process))
    operation, key, first, last, process = operation[order], key[order], first[order], last[order], process[order]
    group = starts_of_groups([process, key])
    group_start = np.maximum.accumulate(np.where(group, np.arange(len(group)), 0))
    counts = np.isin(operations.type[operation], counting)
    newest = np.maximum.accumulate(np.where(counts, np.arange(len(counts)), -1))
    before = np.full(len(operation), -1, dtype=np.int64)
    before[1:] = newest[:-1]
    before[before < group_start] = -1
    return _SequenceSpans(operation, key, first, last, before)


def _still_assigned(operations: Operations, spans: _SequenceSpans) -> _SequenceSpans:
    """Clears ``before`` if an assign or subscribe (ok or info) in between dropped the key or sought the beginning."""
    history = operations.history
    changes = np.isin(operations.f, [ASSIGN, SUBSCRIBE]) & (operations.type != FAIL)
    lines = operations.row[changes]
    sought = history.seeks[lines] | history.seeks[operations.begin[changes]]
    keeping = lines[~sought]
    process_of, clock = history.process, len(history) + 1
    _, process_code = np.unique(process_of, return_inverse=True)
    all_changes = np.sort(process_code[lines] * clock + lines)
    listed = np.isin(history.listed["line"], keeping)
    key_number = _key_numbers(operations, history.listed["key"][listed])
    line = history.listed["line"][listed][key_number >= 0]
    key_number = key_number[key_number >= 0]
    width = len(operations.keys)
    # (process, key, line): the same key may be listed twice
    kept = np.unique((process_code[line] * width + key_number) * clock + line)
    now, then = operations.row[spans.operation], operations.row[spans.operation[spans.before]]
    process = process_code[now] if len(now) else now
    both = process * width + spans.key
    changed = np.searchsorted(all_changes, process * clock + now) - np.searchsorted(all_changes, process * clock + then)
    held = np.searchsorted(kept, both * clock + now) - np.searchsorted(kept, both * clock + then)
    before = np.where(changed == held, spans.before, -1)
    return _SequenceSpans(spans.operation, spans.key, spans.first, spans.last, before)


def _key_numbers(operations: Operations, codes: IntArray) -> IntArray:
    """The numbers of the keys with these codes; -1 for keys without any send or read."""
    order = np.argsort(operations.keys)
    if not len(order):
        return np.full(len(codes), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(operations.keys[order], codes), len(order) - 1)
    found: IntArray = np.where(operations.keys[order][at] == codes, order[at], -1)
    return found


def _pairs(operations: Operations, lines: IntArray, keys: IntArray) -> IntArray:
    """The pairs (operation, key) of these lines and key codes, each encoded as one number. Unknown ones are dropped."""
    if not len(lines):
        return lines
    of_line = np.full(len(operations.history), -1, dtype=np.int64)
    of_line[operations.begin] = np.arange(len(operations))
    done: BoolArray = operations.end != NEVER
    of_line[operations.end[done]] = np.flatnonzero(done)
    numbers, operation = _key_numbers(operations, keys), of_line[lines]
    known = (numbers >= 0) & (operation >= 0) & (operations.history.type[lines] != INVOKE)
    pairs: IntArray = operation[known] * len(operations.keys) + numbers[known]
    return pairs
