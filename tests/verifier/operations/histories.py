"""Histories for tests: simulated by a small correct log, then mutated; and planted ones in a short notation.

A line is a dictionary as JSON lines have it. ``simulate`` makes what clients of a correct cluster would see; mutations
change what clients were told, never the form of the history, so every result is well formed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from verifier.operations.model import HistoryBuilder, OperationHistory
from verifier.operations.verify_history import ClientVerdict

Line = dict[str, Any]


def history_of(lines: list[Line]) -> OperationHistory:
    """The columns of these lines."""
    builder = HistoryBuilder("test")
    builder.add_all(enumerate(deepcopy(lines), start=1))
    return builder.finish()


def numbered(lines: list[Line]) -> list[Line]:
    """The same lines with ``index`` and ``time``."""
    return [{"index": number, "time": number * 1000, **line} for number, line in enumerate(lines)]


def op(process: Any, f: str, value: Any, kind: str = "ok", **more: Any) -> list[Line]:
    """An invocation and its completion, next to each other. ``kind`` ``open``: without a completion."""
    invoked = value
    if f in ("send", "poll", "txn"):
        invoked = [_asked(mop) for mop in value]
    lines = [{"process": process, "type": "invoke", "f": f, "value": invoked}]
    if kind != "open":
        lines.append({"process": process, "type": kind, "f": f, "value": value, **more})
    return lines


def _asked(mop: list[Any]) -> list[Any]:
    if mop[0] == "poll":
        return ["poll"]
    return ["send", mop[1], mop[2][1] if isinstance(mop[2], list) else mop[2]]


def simulate(
    random: Random, processes: int = 3, keys: int = 2, operations: int = 14, strings: bool = False
) -> list[Line]:
    """A history of a correct log under concurrent transactions that may fail, time out or never end."""
    logs: dict[int, list[tuple[int, Any]]] = {key: [] for key in range(keys)}
    end: dict[int, int] = dict.fromkeys(range(keys), random.choice([0, 5, 10**15]))
    position: dict[Any, dict[int, int]] = defaultdict(dict)
    values = defaultdict(int)
    busy: dict[int, tuple[Line, Line]] = {}
    number = {slot: slot for slot in range(processes)}
    lines: list[Line] = []
    started = 0
    while started < operations or busy:
        slot = random.randrange(processes)
        if slot in busy:
            _, completion = busy.pop(slot)
            if completion["type"] == "open":
                number[slot] += processes
                continue
            lines.append(completion)
            if completion["type"] == "info":
                number[slot] += processes
            continue
        if started >= operations:
            if busy:
                continue
            break
        started += 1
        process = number[slot]
        completion = _completion(random, process, keys, logs, end, position[process], values, strings)
        invoked = completion["value"]
        if completion["f"] in ("send", "poll", "txn"):
            invoked = [_asked(mop) for mop in invoked]
        if completion["type"] in ("info", "fail") and random.random() < 0.3:
            completion["value"] = invoked
        invocation = {"process": process, "type": "invoke", "f": completion["f"], "value": invoked}
        lines.append(invocation)
        busy[slot] = (invocation, completion)
    return numbered(lines)


def _completion(
    random: Random, process: int, keys: int, logs: dict[int, list[tuple[int, Any]]], end: dict[int, int],
    position: dict[int, int], values: dict[int, int], strings: bool,
) -> Line:  # fmt: skip
    f = random.choice(["send", "send", "poll", "poll", "txn", "txn", "assign", "subscribe", "crash"])
    line: Line = {"process": process, "f": f, "type": "ok", "value": None}
    if f == "crash":
        return line | {"type": "info"}
    if f in ("assign", "subscribe"):
        chosen = random.sample(range(keys), random.randint(1, keys))
        for key in set(position) - set(chosen):
            del position[key]
        if random.random() < 0.2:
            position.clear()
            line["seek-to-beginning?"] = True
        return line | {"value": chosen}
    kind = random.choice(["ok", "ok", "ok", "ok", "info", "fail", "open"])
    happened = kind == "ok" or (kind != "fail" and random.random() < 0.5)
    mops: list[list[Any]] = []
    written = []
    before = dict(position)
    for _ in range(random.randint(1, 3)):
        if f == "poll" or (f == "txn" and random.random() < 0.5):
            mops.append(["poll", _polled(random, logs, position)])
        else:
            key = random.randrange(keys)
            values[key] += 1
            value: Any = f"v{values[key]}" if strings else values[key]
            written.append((len(mops), key, value))
            mops.append(["send", key, value])
    if kind != "ok":
        # a client goes back to where it was
        position.clear()
        position.update(before)
    if happened:
        for place, key, value in written:
            logs[key].append((end[key], value))
            mops[place] = ["send", key, [end[key] if random.random() < 0.9 else None, value]]
            end[key] += 1 if random.random() < 0.8 else random.randint(2, 4)
    if mops and all(mop[0] == "send" for mop in mops):
        f = "send"
    elif all(mop[0] == "poll" for mop in mops):
        f = "poll"
    return line | {"f": f, "type": kind, "value": mops}


def _polled(random: Random, logs: dict[int, list[tuple[int, Any]]], position: dict[int, int]) -> Any:
    polled = {}
    for key, log in logs.items():
        if random.random() < 0.7:
            start = position.setdefault(key, 0)
            got = log[start : start + random.randint(1, 4)]
            if got:
                polled[key] = [[offset, value] for offset, value in got]
                position[key] = start + len(got)
    return polled


def _completions(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["type"] != "invoke" and line["f"] in ("send", "poll", "txn")]


def _reads(lines: list[Line]) -> list[list[list[Any]]]:
    """Every list of [offset, value] that a poll returned."""
    return [
        pairs
        for line in _completions(lines)
        for mop in line["value"] or []
        if mop[0] == "poll" and len(mop) > 1 and mop[1]
        for pairs in mop[1].values()
        if pairs
    ]


def _sends(lines: list[Line]) -> list[list[Any]]:
    return [
        mop
        for line in _completions(lines)
        for mop in line["value"] or []
        if mop[0] == "send" and isinstance(mop[2], list)
    ]


def drop_read(lines: list[Line], random: Random) -> None:
    pairs = random.choice(_reads(lines))
    del pairs[random.randrange(len(pairs))]


def repeat_read(lines: list[Line], random: Random) -> None:
    pairs = random.choice(_reads(lines))
    pairs.insert(random.randrange(len(pairs) + 1), list(random.choice(pairs)))


def swap_reads(lines: list[Line], random: Random) -> None:
    pairs = random.choice(_reads(lines))
    one, other = random.randrange(len(pairs)), random.randrange(len(pairs))
    pairs[one], pairs[other] = pairs[other], pairs[one]


def other_value(lines: list[Line], random: Random) -> None:
    pair = random.choice(random.choice(_reads(lines)))
    pair[1] = random.choice(random.choice(_reads(lines)))[1]


def unknown_value(lines: list[Line], random: Random) -> None:
    random.choice(random.choice(_reads(lines)))[1] = 999


def other_offset(lines: list[Line], random: Random) -> None:
    pair = random.choice(random.choice(_reads(lines)))
    pair[0] = random.choice([None, pair[0] + 1, max(pair[0] - 1, 0)]) if pair[0] is not None else 3


def other_sent_offset(lines: list[Line], random: Random) -> None:
    sent = random.choice(_sends(lines))[2]
    sent[0] = random.choice([None, (sent[0] or 0) + 1, max((sent[0] or 0) - 1, 0)])


def swap_sent_offsets(lines: list[Line], random: Random) -> None:
    one, other = random.choice(_sends(lines))[2], random.choice(_sends(lines))[2]
    one[0], other[0] = other[0], one[0]


def other_outcome(lines: list[Line], random: Random) -> None:
    random.choice(_completions(lines))["type"] = random.choice(["ok", "info", "fail"])


def forget_polls(lines: list[Line], random: Random) -> None:
    random.choice(_reads(lines)).clear()


def read_own(lines: list[Line], random: Random) -> None:
    line = random.choice([each for each in _completions(lines) if any(mop[0] == "send" for mop in each["value"] or [])])
    _, key, sent = random.choice([mop for mop in line["value"] if mop[0] == "send"])
    pair = list(sent) if isinstance(sent, list) else [None, sent]
    polls = [mop for mop in line["value"] if mop[0] == "poll" and len(mop) > 1]
    if polls:
        polls[0][1].setdefault(key, []).append(pair)


def read_early(lines: list[Line], random: Random) -> None:
    """An operation returns what another one sends, perhaps later: circles and trips in time."""
    _, key, sent = random.choice(_sends(lines))
    polls = [mop for line in _completions(lines) for mop in line["value"] or [] if mop[0] == "poll" and len(mop) > 1]
    random.choice(polls)[1].setdefault(key, []).append(list(sent))


def rebalance(lines: list[Line], random: Random) -> None:
    line = random.choice(_completions(lines))
    line["rebalance-log"] = [{"keys": [random.randrange(2)]}]


MUTATIONS: tuple[Callable[[list[Line], Random], None], ...] = (
    drop_read, repeat_read, swap_reads, other_value, unknown_value, other_offset, other_sent_offset, swap_sent_offsets,
    other_outcome, forget_polls, read_own, read_early, read_early, rebalance,
)  # fmt: skip


def mutated(seed: int, mutations: int) -> list[Line]:
    """A simulated history with so many mutations; one that finds nothing to change changes nothing."""
    random = Random(seed)
    lines = simulate(random, random.randint(2, 4), random.randint(1, 3), random.randint(4, 18), random.random() < 0.2)
    for _ in range(mutations):
        before = deepcopy(lines)
        try:
            random.choice(MUTATIONS)(lines, random)
        except IndexError:
            lines = before
    return lines


def counts(verdict: ClientVerdict) -> dict[str, int]:
    """How often each anomaly was found; what was not found is left out."""
    return {name: check.count for name, check in verdict.verdict.checks.items() if check.count}
