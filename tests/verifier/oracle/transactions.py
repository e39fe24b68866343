"""The checks of transactions once more, slow and obvious: of a whole run, row by row, with tables of all costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from tests.verifier.oracle import clients
from tests.verifier.oracle.model import Anomaly
from tests.verifier.oracle.reading import read_clock
from tests.verifier.oracle.transaction_logs import (
    Place,
    Row,
    State,
    may_lose,
    read_run,
    read_state,
    whole,
)
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel


@dataclass
class Decided:
    """One transaction; ``markers`` is where it ends, by partition."""

    producer_id: int
    epoch: int
    what: str
    places: frozenset[Place]
    leader_epoch: int = -1
    complete: bool = False
    markers: dict[Place, Row | None] = field(default_factory=dict)


def find_all(directory: RunDirectory, run: RunModel, rows: list[dict[str, Any]] | None = None) -> list[Anomaly]:
    """What the checks must find in a run; of what clients saw, in ``rows``."""
    logs, state = read_run(directory)
    if not state:
        return []
    told = rows or []
    seen = [*clients.find_all(told), *clients.bank(told, run)]
    kept = {place: log for place, log in logs.items() if not may_lose(run, place)}
    seen += committed_and_aborted(kept, clients.read(told)[0])
    seen += told_and_undecided(state, kept, clients.read(told)[0])
    return [*judge(logs, state, directory, run), *seen]


def committed_and_aborted(logs: dict[Place, list[Row]], told: list[clients.Transaction]) -> Iterator[Anomaly]:
    """Each value of a transaction that its client knows to be committed: by which marker it ends."""
    for transaction in told:
        producers = {row["producer_id"] for row in transaction.rows if (row["f"], row["type"]) == ("commit", "ok")}
        for place, log in logs.items():
            offsets = []
            for send in transaction.sends:
                if (send["topic"], send["partition"]) == place and send["type"] == "ok" and send["first_offset"] >= 0:
                    sent = clients.values(send).values()
                    offsets += [offset for offset in sent if ends_aborted(log, producers, offset)]
            if offsets:
                yield Anomaly("aborted-commit", None, place[1], None, None, min(offsets))


def told_and_undecided(
    state: dict[int, list[Row]], kept: dict[Place, list[Row]], told: list[clients.Transaction]
) -> Iterator[Anomaly]:
    """Of each producer from its last transaction back: one that, with those behind it, fits no decisions in order."""
    damaged = {number for number in range(max(state)) if number not in state}
    read = {number: [read_state(number, row) for row in log] for number, log in sorted(state.items())}
    damaged |= {number for number, log in state.items() if not whole(log) or None in read[number]}
    records = [each for several in read.values() for each in several if each is not None]
    kept = {place: log for place, log in kept.items() if whole(log)}
    kept = {p: log for p, log in kept.items() if not any(row.what == "unreadable" and row.count for row in log)}
    for producer in sorted({each.producer for each in told} - {-1}):
        own = [record for record in records if record.producer_id == producer]
        if (own and own[-1].partition in damaged) or (not own and damaged):
            continue
        decided: list[Decided] = []
        for name in sorted({record.name for record in own}):
            decided += [
                each for each in decide([r for r in records if r.name == name])[0] if each.producer_id == producer
            ]
        later: list[set[int]] = []
        for each in sorted((each for each in told if each.producer == producer and each.stored), key=began)[::-1]:
            fitting, committed = fits(each, decided, kept)
            if each.committed and not in_order([fitting, *later]):
                topic_partition, offset = min(each.stored)
                yield Anomaly("undecided-commit", None, topic_partition[1], None, None, offset)
            elif (each.committed or (committed and not each.aborted)) and in_order([fitting, *later]):
                later.insert(0, fitting)


def began(transaction: clients.Transaction) -> tuple[int, str, int]:
    first = min(
        [row for row in transaction.rows if row["f"] == "begin"] or transaction.rows, key=lambda r: r["invoke_ns"]
    )
    return first["invoke_ns"], first["process"], first["op"]


def in_order(sets: list[set[int]], least: int = 0) -> bool:
    """Whether each can have one of its numbers, all of them ascending."""
    return not sets or any(in_order(sets[1:], each + 1) for each in sorted(sets[0]) if each >= least)


def fits(
    transaction: clients.Transaction, decided: list[Decided], kept: dict[Place, list[Row]]
) -> tuple[set[int], bool]:
    """The decisions that may be a transaction's, by every record that was stored; and whether a COMMIT ends any."""
    places = {place for place, _ in transaction.stored}
    fitting = {n for n, each in enumerate(decided) if each.what == "COMMIT" and places <= each.places}
    committed = False
    for place, offset in transaction.stored:
        rows = [row for row in kept.get(place, []) if row.producer_id == transaction.producer and row.what]
        ends = [(row, at > 0 and rows[at - 1].what == "data") for at, row in enumerate(rows) if row.what != "data"]
        here = [n for n, each in enumerate(decided) if place in each.places]
        for at, (row, holds) in enumerate(ends):
            start = next((r.offset for r in rows if r.offset > (ends[at - 1][0].offset if at else -1)), -1)
            if holds and start <= offset < row.offset:
                free = belongs(ends, [decided[n] for n in here], at)
                committed |= bool(free) and row.what == "COMMIT"
                fitting &= {here[n] for n in free} if free else fitting
    return fitting, committed


def belongs(ends: list[tuple[Row, bool]], here: list[Decided], wanted: int) -> set[int]:
    """To which decisions a marker belongs, in all ways to go through both without anything that does not fit."""

    @cache
    def ways(at: int, number: int) -> frozenset[int] | None:
        """The decisions on all ways from here to the end; None if there is no way."""
        if (at, number) == (len(ends), len(here)):
            return frozenset()
        found: list[frozenset[int] | None] = []
        if at < len(ends):
            row, holds = ends[at]
            if number < len(here) and (row.epoch, row.what) == (here[number].epoch, here[number].what):
                rest = ways(at + 1, number + 1)
                found.append(None if rest is None else rest | ({number} if at == wanted else set()))
            if not holds and any((each.epoch, each.what) == (row.epoch, row.what) for each in here[:number]):
                found.append(ways(at + 1, number))
        if number < len(here) and not here[number].complete:
            found.append(ways(at, number + 1))
        known = [each for each in found if each is not None]
        return frozenset().union(*known) if known else None

    return set(ways(0, 0) or ())


def ends_aborted(log: list[Row], producers: set[int], offset: int) -> bool:
    for producer in producers:
        rows = [row for row in log if row.producer_id == producer and row.what in ("data", "COMMIT", "ABORT")]
        begun = [row.offset for row in rows if row.what == "data" and row.offset <= offset]
        after = [row for row in rows if row.what != "data" and row.offset >= offset]
        before = [row.offset for row in rows if row.what != "data" and row.offset < offset]
        if after and after[0].what == "ABORT" and any(each > max(before, default=-1) for each in begun):
            return True
    return False


def judge(
    logs: dict[Place, list[Row]], state: dict[int, list[Row]], directory: RunDirectory, run: RunModel
) -> Iterator[Anomaly]:
    damaged = {number for number in range(max(state)) if number not in state}
    records: list[State] = []
    for number, log in sorted(state.items()):
        read = [read_state(number, row) for row in log]
        records += [each for each in read if each is not None]
        if not whole(log) or None in read:
            damaged.add(number)
    for (_, partition), log in logs.items():
        for at, row in enumerate(log):
            if row.what and any(e.what and e.producer_id == row.producer_id and e.epoch > row.epoch for e in log[:at]):
                yield Anomaly("zombie-write", None, partition, None, None, row.offset)
            ends = [each for each in log[: at + 1] if each.what in ("COMMIT", "ABORT")]
            ends = [each for each in ends if each.producer_id == row.producer_id]
            if row in ends and any(each.coordinator > row.coordinator for each in ends):
                yield Anomaly("marker-audit", "former-coordinator", partition, None, None, row.offset)
    decisions: list[Decided] = []
    for name in sorted({record.name for record in records}):
        found, wrong = decide([record for record in records if record.name == name])
        decisions += found
        for record in wrong:
            yield Anomaly("marker-audit", "decisions", record.partition, None, None, record.offset)
    logs = {place: log for place, log in logs.items() if not may_lose(run, place)}
    producers = {decision.producer_id for decision in decisions}
    producers |= {row.producer_id for log in logs.values() for row in log if row.what}
    for producer in sorted(producers):
        newest = [record for record in records if record.producer_id == producer][-1:]
        if (newest and newest[0].partition in damaged) or (not newest and damaged):
            continue
        for place, log in sorted(logs.items()):
            if whole(log) and not any(row.what == "unreadable" and row.count for row in log):
                own = [decision for decision in decisions if decision.producer_id == producer]
                yield from in_one_log(place, log, producer, own, newest, directory, run)
        for decision in decisions:
            if decision.producer_id == producer:
                yield from torn(decision, logs)


def in_one_log(
    place: Place, log: list[Row], producer: int, decisions: list[Decided], newest: list[State],
    directory: RunDirectory, run: RunModel,
) -> Iterator[Anomaly]:  # fmt: skip
    """Of one producer: markers beside decisions, and what is open."""
    rows = [row for row in log if row.producer_id == producer and row.what]
    ends = [(row, at > 0 and rows[at - 1].what == "data") for at, row in enumerate(rows) if row.what != "data"]
    ends = [each for each in ends if each[0].what != "unreadable"]
    here = [decision for decision in decisions if place in decision.places]
    for what, row in aligned(ends, here, place):
        yield Anomaly("marker-audit", what, place[1], None, None, None if row is None else row.offset)
    for at, (row, holds) in enumerate(ends):
        free = belongs(ends, here, at) if holds else set()
        is_fenced = any(each.coordinator > row.coordinator for each, _ in ends[:at])
        if free and row.coordinator < min(here[n].leader_epoch for n in free) and not is_fenced:
            yield Anomaly("marker-audit", "former-coordinator", place[1], None, None, row.offset)
    for at, row in enumerate(rows):
        before = rows[:at]
        while any(each.what in ("COMMIT", "ABORT") for each in before):
            before = before[1:]
        data = [each for each in before if each.what == "data"]
        if row.what == "COMMIT" and data and data[0].epoch < row.epoch:
            yield Anomaly("marker-audit", "former-epoch", place[1], None, None, row.offset)
    if rows and rows[-1].what == "data":
        first = rows[-1].offset
        for row in reversed(rows):
            if row.what != "data":
                break
            first = row.offset
        if hangs(place, newest, directory, run):
            yield Anomaly("hanging-transaction", None, place[1], None, None, first)


def hangs(place: Place, newest: list[State], directory: RunDirectory, run: RunModel) -> bool:
    if not newest or newest[0].state not in (1, 2, 3) or place not in newest[0].places:
        return True
    times = {phase.name: phase for phase in run.phases}
    if "heal" not in times or "stop" not in times or times["heal"].end_ns is None:
        return False
    began = datetime.fromisoformat(run.started).timestamp() * 1000
    healed = began + (times["heal"].end_ns - run.started_ns) // 1_000_000
    stopped = began + (times["stop"].start_ns - run.started_ns) // 1_000_000 - sum(read_clock(directory, run))
    return stopped > max(newest[0].started + newest[0].timeout, healed) + 15_000


def aligned(ends: list[tuple[Row, bool]], here: list[Decided], place: Place) -> Iterator[tuple[str, Row | None]]:
    """What does not fit, by the cheapest way of all to go through markers and decisions."""

    def again(at: int, number: int) -> bool:
        row, holds = ends[at]
        return not holds and any((each.epoch, each.what) == (row.epoch, row.what) for each in here[:number])

    @cache
    def cost(at: int, number: int) -> int:
        ways = [step[0] + cost(*step[1]) for step in steps(at, number)]
        return min(ways) if (at, number) != (len(ends), len(here)) else 0

    def steps(at: int, number: int) -> list[tuple[int, tuple[int, int], str | None]]:
        found: list[tuple[int, tuple[int, int], str | None]] = []
        if at < len(ends) and number < len(here) and ends[at][0].epoch == here[number].epoch:
            same = ends[at][0].what == here[number].what
            found.append((0 if same else 3, (at + 1, number + 1), None if same else "opposite"))
        if at < len(ends):
            found.append((0, (at + 1, number), None) if again(at, number) else (2, (at + 1, number), "stray"))
        if number < len(here):
            wrong = here[number].complete
            found.append((2 if wrong else 0, (at, number + 1), "missing" if wrong else None))
        return found

    at = number = 0
    while (at, number) != (len(ends), len(here)):
        price, after, wrong = next(step for step in steps(at, number) if step[0] + cost(*step[1]) == cost(at, number))
        if after[1] > number:
            here[number].markers[place] = ends[at][0] if after[0] > at else None
        if wrong is not None:
            yield wrong, None if wrong == "missing" else ends[at][0]
        assert price == 0 or wrong is not None
        at, number = after


def torn(decision: Decided, logs: dict[Place, list[Row]]) -> Iterator[Anomaly]:
    told = decision.markers
    if not any(row is not None and row.what == "COMMIT" for row in told.values()):
        return
    for place, row in told.items():
        if row is not None and row.what == "ABORT":
            yield Anomaly("torn-transaction", None, place[1], None, None, row.offset)
        elif row is None and decision.complete:
            rest: list[Row] = []
            for each in logs[place]:
                if each.producer_id == decision.producer_id and each.what:
                    rest = [*rest, each] if each.what == "data" else []
            yield Anomaly("torn-transaction", None, place[1], None, None, rest[0].offset if rest else None)


def decide(records: list[State]) -> tuple[list[Decided], list[State]]:
    """The decisions of one id in their order, and the first record that contradicts each."""
    found: list[Decided] = []
    wrong: list[State] = []
    waiting = blamed = False
    for record in records:
        if record.state == 1:
            waiting = False
        if record.state not in (2, 3, 4, 5):
            continue
        what = "COMMIT" if record.state in (2, 4) else "ABORT"
        fences = record.state == 3 and waiting and found[-1].producer_id == record.producer_id
        if fences and found[-1].what == "COMMIT" and record.epoch > found[-1].epoch:
            found[-1] = Decided(record.producer_id, record.epoch, what, record.places, record.leader_epoch)
        elif waiting and what != found[-1].what:
            wrong += [] if blamed else [record]
            blamed = True
        elif waiting and record.state in (4, 5):
            found[-1].complete = True
        elif not waiting and record.state in (2, 3):
            found.append(Decided(record.producer_id, record.epoch, what, record.places, record.leader_epoch))
            blamed = False
        waiting = record.state in (2, 3)
    return found, wrong
