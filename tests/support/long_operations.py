"""A long history of transactions with planted circles, written line by line. Owns what is planted, and where.

A correct log under concurrent transactions: each process sends to any keys and polls two keys of its own, in order and
without a gap, so nothing but the circles is wrong. A planted circle is a few concurrent transactions that each poll
what the next one sends. The long circle is a chain through the first part of the history: each of its transactions
polls what the one before sent, and the first polls what the last will send; reads around it make thousands of others
part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from verifier.operations.writing import FORMS

PROCESSES = 20
KEYS = 2 * PROCESSES
#: Keys of circles, which nothing else is sent to.
CIRCLE_KEYS = 1_000
CHAIN_KEYS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """``lengths`` of the short circles, and how many transactions the chain of the long one has (0: none)."""

    transactions: int
    lengths: tuple[int, ...]
    chain: int = 0

    def starts(self) -> dict[int, int]:
        """First transaction of each circle -> its number."""
        begin = self.transactions // 10
        step = (self.transactions - begin) // (len(self.lengths) + 1)
        return {begin + step * (number + 1): number for number in range(len(self.lengths))}


def plan(transactions: int, count: int = 20, chain: int = 0, seed: int = 1) -> Plan:
    """So many circles of two to six transactions, and perhaps a chain within the first tenth of the history."""
    random = Random(seed)
    return Plan(transactions, tuple(random.randint(2, 6) for _ in range(count)), chain)


def write_operations(path: Path, planned: Plan, seed: int = 1) -> None:
    """Write the history in the form that the path's name asks for. Raises ``OSError``."""
    form = FORMS[path.suffix[1:]]
    with path.open("w", encoding="utf-8") as file:
        for index, line in enumerate(_lines(planned, Random(seed))):
            file.write(form({"index": index, "time": index * 1000, **line}) + "\n")


def _lines(planned: Plan, random: Random) -> Iterator[dict[str, Any]]:
    """Transactions in batches that are concurrent: all of a batch are invoked, then all complete."""
    logs: list[list[int]] = [[] for _ in range(KEYS)]
    position = [0] * KEYS
    starts = planned.starts()
    spacing = planned.transactions // 10 // planned.chain if planned.chain else 0
    value = chained = number = 0
    while number < planned.transactions:
        circle = starts.get(number)
        until = min((at for at in starts if at > number), default=planned.transactions)
        size = min(PROCESSES, until - number) if circle is None else planned.lengths[circle]
        values = iter(range(value, value + 3 * PROCESSES))
        value += 3 * PROCESSES
        sends = [[(random.randrange(KEYS), each) for each in islice(values, random.randint(1, 2))] for _ in range(size)]
        polls = [_polled(logs, position, process) for process in range(size)]
        links: list[list[list[Any]]] = [[] for _ in range(size)]
        if circle is not None:
            links = [_link(circle, place, size, value) for place in range(size)]
        for place in range(size if circle is None else 0):
            if chained < planned.chain and number + place >= chained * spacing:
                links[place] = _chain(chained, planned.chain)
                chained += 1
        for process in range(size):
            asked = [["send", key, each] for key, each in sends[process]]
            asked += [[mop[0], mop[1], mop[2][1]] for mop in links[process] if mop[0] == "send"]
            yield {"process": process, "type": "invoke", "f": "txn", "value": [*asked, ["poll"]]}
        for process in range(size):
            done: list[list[Any]] = []
            for key, each in sends[process]:
                done.append(["send", key, [len(logs[key]), each]])
                logs[key].append(each)
            linked = [mop for mop in links[process] if mop[0] == "send"]
            read = polls[process] | {
                key: pairs for mop in links[process] if mop[0] == "poll" for key, pairs in mop[1].items()
            }
            yield {"process": process, "type": "ok", "f": "txn", "value": [*done, *linked, ["poll", read]]}
        number += size
    for process in range(PROCESSES):
        yield {"process": process, "type": "invoke", "f": "poll", "value": [["poll"]]}
        yield {"process": process, "type": "ok", "f": "poll", "value": [["poll", _polled(logs, position, process)]]}


def _polled(logs: list[list[int]], position: list[int], process: int) -> dict[int, list[list[int]]]:
    """What is new in the process's own keys."""
    read = {}
    for key in (2 * process, 2 * process + 1):
        start, log = position[key], logs[key]
        if start < len(log):
            read[key] = [[start + step, each] for step, each in enumerate(log[start:])]
            position[key] = len(log)
    return read


def _link(circle: int, place: int, size: int, value: int) -> list[list[Any]]:
    """A member of a circle sends to a key of its own and polls that of the next."""
    keys = [CIRCLE_KEYS + 10 * circle + each for each in (place, (place + 1) % size)]
    return [["send", keys[0], [0, value]], ["poll", {keys[1]: [[0, value]]}]]


def _chain(number: int, length: int) -> list[list[Any]]:
    """A member of the chain polls what the one before sent; the first, what the last will send."""
    before = (number - 1) % length
    return [["send", CHAIN_KEYS + number, [0, number]], ["poll", {CHAIN_KEYS + before: [[0, before]]}]]
