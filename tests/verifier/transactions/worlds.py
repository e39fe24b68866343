"""Small worlds of transactions: what correct brokers leave on disk, whatever happens to them.

Owns the making (a few transactional ids take turns, one step each); what changes a world is in ``mutations``. Judges
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.support import side_files
from tests.support.stories import TOPIC, Batch
from tests.support.transaction_bytes import (
    ABORT,
    COMMIT,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TRANSACTIONAL,
    marker,
    state_key,
    state_value,
)
from verifier.evidence.history import Function, HistoryOutcome, HistoryRow
from verifier.evidence.run_directory import RunDirectory

Place = tuple[str, int]
_PREPARE = {COMMIT: PREPARE_COMMIT, ABORT: PREPARE_ABORT}
_COMPLETE = {COMMIT: COMPLETE_COMMIT, ABORT: COMPLETE_ABORT}
#: Partitions of ``__transaction_state``.
STATES = 2


@dataclass
class Producer:
    """One transactional id; ``kind`` is how its transaction was decided, None before. ``decided_by``: in which epoch of
    its coordinator its newest record was stored. ``number`` is the client's own of the transaction that it began last.
    """

    name: str
    producer_id: int
    epoch: int = 0
    sequence: int = 0
    places: set[Place] = field(default_factory=set)
    kind: int | None = None
    lacking: set[Place] = field(default_factory=set)
    written: set[Place] = field(default_factory=set)
    decided_by: int = 1
    number: int = -1
    is_begun: bool = False


@dataclass
class World:
    """All logs: offsets are given when they are written. ``behind``: how many batches the second broker lacks, if it
    was not deleted. ``ends``: where a log ended of which nothing is left. ``epochs``: of the coordinators.

    ``rows`` is what clients saw; ``whims`` decide which answers they got. ``wrong``: how often a client is told of a
    commit that no one decides, or that lacks a partition.
    """

    logs: dict[Place, list[Batch]]
    state: list[list[Batch]]
    behind: int = 0
    ends: dict[Place, int] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=lambda: [1] * STATES)
    rows: list[dict[str, Any]] = field(default_factory=list)
    whims: Random = field(default_factory=lambda: Random(0))
    wrong: float = 0.0

    def write(self, path: Path) -> RunDirectory:
        """Brokers 1 and 2 hold the logs; the second one may not have come as far."""
        directory = RunDirectory(path)
        directory.prepare()
        logs = {f"{topic}-{partition}": log for (topic, partition), log in self.logs.items()}
        ends = {f"{topic}-{partition}": end for (topic, partition), end in self.ends.items()}
        logs |= {f"__transaction_state-{number}": log for number, log in enumerate(self.state)}
        for broker, lacks in ((1, 0), (2, self.behind)):
            for name, log in logs.items():
                home = directory.node(broker) / "data" / name
                home.mkdir(parents=True)
                kept = log[: len(log) - lacks] if lacks < len(log) else []
                base = f"{kept[0].base_offset if kept else ends.get(name, 0):020d}"
                (home / f"{base}.log").write_bytes(b"".join(batch.encode() for batch in kept))
                if aborted := side_files.aborted(kept, kept):
                    (home / f"{base}.txnindex").write_bytes(aborted)
        return directory


def made(random: Random, steps: int = 40, whims: int = 0, wrong: float = 0.0) -> World:
    """A world in which nothing went wrong, but for what ``wrong`` says."""
    places = [(TOPIC, number) for number in range(random.randint(1, 3))]
    behind = random.randint(0, 2)
    world = World(
        {place: [] for place in places}, [[] for _ in range(STATES)], behind, whims=Random(whims), wrong=wrong
    )
    producers = [Producer(f"id-{number}", 1000 + number) for number in range(random.randint(1, 3))]
    for producer in producers:
        _note(world, producer, EMPTY)
    for _ in range(steps):
        _step(world, random.choice(producers), random)
    return world


def _step(world: World, producer: Producer, random: Random) -> None:
    if producer.kind is not None:
        _finish(world, producer, random)
    elif not producer.places or random.random() < 0.2:
        if not producer.is_begun:
            _begin(world, producer)
        producer.places |= {random.choice([*world.logs])}
        _note(world, producer, ONGOING)
    elif random.random() < 0.6:
        if not producer.is_begun:
            _begin(world, producer)
        place = random.choice(sorted(producer.places))
        count = random.randint(1, 2)
        values = (b"v",) * count
        batch = Batch(
            0, (), producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=producer.sequence,
            raw_values=values, attributes=TRANSACTIONAL,
        )  # fmt: skip
        _append(world.logs[place], batch)
        _send(world, producer, place, count)
        producer.sequence += count
        producer.written.add(place)
    else:
        producer.kind = random.choice([COMMIT, ABORT])
        if producer.kind == ABORT and random.random() < 0.4:
            producer.epoch += 1  # the coordinator aborts it: it took too long
        is_told = _end(world, producer, producer.kind)
        if is_told and world.whims.random() < world.wrong:
            producer.kind = None  # the client's next transaction is the same one
            return
        if is_told and world.whims.random() < world.wrong:
            producer.places.discard(world.whims.choice(sorted(producer.places)))
        _note(world, producer, _PREPARE[producer.kind])
        producer.lacking = set(producer.places)


def _finish(world: World, producer: Producer, random: Random) -> None:
    """One marker more, perhaps one that is there already; when all are there, the end."""
    assert producer.kind is not None
    done = producer.places - producer.lacking
    if producer.lacking and (not done or random.random() < 0.8):
        place = random.choice(sorted(producer.lacking))
    elif done and random.random() < 0.2:
        place = random.choice(sorted(done))
    else:
        if not producer.lacking:
            kind, producer.kind, producer.places = producer.kind, None, set()
            producer.written = set()
            _note(world, producer, _COMPLETE[kind])
            if random.random() < 0.2:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
                _note(world, producer, EMPTY)
        return
    epoch = _coordinator_epoch(world, producer, place, random)
    _append(world.logs[place], marker(0, producer.kind, producer.producer_id, producer.epoch, epoch))
    producer.lacking.discard(place)


def _begin(world: World, producer: Producer) -> None:
    producer.number += 1
    producer.is_begun = True
    _tell(world, producer, "begin", "ok")


def _send(world: World, producer: Producer, place: Place, count: int) -> None:
    """What was written last there is told; sometimes no answer comes."""
    is_told = world.whims.random() < 0.9
    offset = world.logs[place][-1].base_offset if is_told else -1
    _tell(
        world, producer, "send", "ok" if is_told else "info", topic=place[0], partition=place[1], stream=0,
        first_sequence=producer.sequence, last_sequence=producer.sequence + count - 1, first_offset=offset,
        last_offset=offset + count - 1 if is_told else -1,
    )  # fmt: skip


def _end(world: World, producer: Producer, kind: int) -> bool:
    """Whether a commit is told to the client; it may ask for one that is aborted, and of any no answer may come."""
    producer.is_begun = False
    is_told = world.whims.random() < 0.7
    if kind == COMMIT:
        _tell(world, producer, "commit", "ok" if is_told else "info")
    elif is_told:
        _tell(world, producer, "abort", "ok")
    else:
        _tell(world, producer, "commit", "info")
    return kind == COMMIT and is_told


def _tell(world: World, producer: Producer, f: Function, outcome: HistoryOutcome, **fields: Any) -> None:
    at = len(world.rows)
    row = HistoryRow(f, outcome, op=producer.number, producer_id=producer.producer_id, **fields)
    world.rows.append(row._replace(invoke_ns=at, complete_ns=at)._asdict() | {"process": producer.name})


def _coordinator_epoch(world: World, producer: Producer, place: Place, random: Random) -> int:
    """The coordinator may have moved since the decision; a former one's marker may still come, before the next's."""
    number = _state_partition(producer)
    world.epochs[number] += random.random() < 0.1
    own = [each for each in world.logs[place] if each.marker is not None and each.producer_id == producer.producer_id]
    newest = [int.from_bytes(each.raw_values[0][2:]) for each in own[-1:]]
    return random.randint(max([producer.decided_by, *newest]), world.epochs[number])


def _state_partition(producer: Producer) -> int:
    return int(producer.name[-1]) % STATES


def _note(world: World, producer: Producer, state: int) -> None:
    value = state_value(state, producer.producer_id, producer.epoch, sorted(producer.places))
    number = _state_partition(producer)
    producer.decided_by = world.epochs[number]
    batch = Batch(0, (), leader_epoch=world.epochs[number], keys=(state_key(producer.name),), raw_values=(value,))
    _append(world.state[number], batch)


def _append(log: list[Batch], batch: Batch) -> None:
    log.append(replace(batch, base_offset=log[-1].next_offset if log else 0))


def renumber(log: list[Batch]) -> None:
    """Offsets follow each other again."""
    batches, log[:] = list(log), []
    for batch in batches:
        _append(log, batch)


TWO = [(TOPIC, 0), (TOPIC, 1)]


def world_of(first: list[Batch], second: list[Batch], records: list[bytes]) -> World:
    """Two logs, and the records of the id ``x`` in the second partition of the coordinator's topic."""
    world = World({(TOPIC, 0): first, (TOPIC, 1): second}, [[], []])
    world.state[1] = [Batch(0, (), keys=(state_key("x"),), raw_values=(value,)) for value in records]
    for log in (*world.logs.values(), *world.state):
        renumber(log)
    return world


def data(epoch: int = 0) -> Batch:
    return Batch(0, (), producer_id=7, producer_epoch=epoch, base_sequence=0, raw_values=(b"v",), attributes=0x10)
