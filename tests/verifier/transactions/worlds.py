"""Small worlds of transactions: what correct brokers leave on disk, whatever happens to them; and what changes it.

Owns the making (a few transactional ids take turns, one step each) and the mutations. Judges nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.support import side_files
from tests.support.stories import MADE_MS, TOPIC, Batch
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
from verifier.evidence.run_directory import RunDirectory

Place = tuple[str, int]
_PREPARE = {COMMIT: PREPARE_COMMIT, ABORT: PREPARE_ABORT}
_COMPLETE = {COMMIT: COMPLETE_COMMIT, ABORT: COMPLETE_ABORT}
#: Partitions of ``__transaction_state``.
STATES = 2


@dataclass
class Producer:
    """One transactional id; ``kind`` is how its transaction was decided, None before. ``decided_by``: in which epoch of
    its coordinator its newest record was stored.
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


@dataclass
class World:
    """All logs: offsets are given when they are written. ``behind``: how many batches the second broker lacks, if it
    was not deleted. ``ends``: where a log ended of which nothing is left. ``epochs``: of the coordinators.
    """

    logs: dict[Place, list[Batch]]
    state: list[list[Batch]]
    behind: int = 0
    ends: dict[Place, int] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=lambda: [1] * STATES)

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


def made(random: Random, steps: int = 40) -> World:
    """A world in which nothing went wrong."""
    places = [(TOPIC, number) for number in range(random.randint(1, 3))]
    world = World({place: [] for place in places}, [[] for _ in range(STATES)], random.randint(0, 2))
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
        producer.places |= {random.choice([*world.logs])}
        _note(world, producer, ONGOING)
    elif random.random() < 0.6:
        place = random.choice(sorted(producer.places))
        count = random.randint(1, 2)
        values = (b"v",) * count
        batch = Batch(
            0, (), producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=producer.sequence,
            raw_values=values, attributes=TRANSACTIONAL,
        )  # fmt: skip
        producer.sequence += count
        producer.written.add(place)
        _append(world.logs[place], batch)
    else:
        producer.kind = random.choice([COMMIT, ABORT])
        if producer.kind == ABORT and random.random() < 0.4:
            producer.epoch += 1  # the coordinator aborts it: it took too long
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


def _markers(world: World) -> list[tuple[list[Batch], int]]:
    return [(log, at) for log in world.logs.values() for at, batch in enumerate(log) if batch.marker is not None]


def drop_marker(world: World, random: Random) -> None:
    """A marker is missing."""
    if found := _markers(world):
        log, at = random.choice(found)
        del log[at]
        renumber(log)


def flip_marker(world: World, random: Random) -> None:
    """A marker says the other."""
    if found := _markers(world):
        log, at = random.choice(found)
        old = log[at]
        log[at] = replace(old, keys=(struct.pack(">hh", 0, 1 - (old.marker or 0)),))


def add_marker(world: World, random: Random) -> None:
    """A marker that no one decided, somewhere."""
    log = random.choice([*world.logs.values()])
    extra = marker(0, random.choice([ABORT, COMMIT]), random.choice([1000, 1001, 1002, 5000]), random.randint(0, 2))
    log.insert(random.randint(0, len(log)), extra)
    renumber(log)


def former_coordinator(world: World, random: Random) -> None:
    """A coordinator that another one has replaced writes a marker."""
    if found := _markers(world):
        log, at = random.choice(found)
        log[at] = replace(log[at], raw_values=(struct.pack(">hi", 0, random.randint(0, 1)),))


def add_data(world: World, random: Random) -> None:
    """A transactional batch that belongs to nothing, or whose epoch was over."""
    log = random.choice([*world.logs.values()])
    batch = Batch(0, (), producer_id=random.choice([1000, 1001, 5000]), base_sequence=0, raw_values=(b"late",))
    log.insert(random.randint(0, len(log)), replace(batch, attributes=TRANSACTIONAL))
    renumber(log)


def drop_record(world: World, random: Random) -> None:
    """The coordinator has lost a record, and the log closed up."""
    log = random.choice(world.state)
    if log:
        del log[random.randrange(len(log))]
        renumber(log)


def contradict(world: World, random: Random) -> None:
    """A transaction is decided again, the other way."""
    found = [(log, at) for log in world.state for at, batch in enumerate(log) if batch.raw_values[0][16] in (2, 3)]
    if found:
        log, at = random.choice(found)
        value = bytearray(log[at].raw_values[0])
        value[16] = 5 - value[16]
        log.insert(at + 1, replace(log[at], raw_values=(bytes(value),)))
        renumber(log)


def age(world: World, random: Random) -> None:
    """Transactions began long ago."""
    for log in world.state:
        for at, batch in enumerate(log):
            value = batch.raw_values[0]
            if value[16] != EMPTY:
                log[at] = replace(batch, raw_values=(value[:-8] + struct.pack(">q", MADE_MS - 600_000),))


def retention(world: World, random: Random) -> None:
    """Legal: the first batches of logs are deleted."""
    for place, log in world.logs.items():
        deleted = random.randint(0, len(log))
        if log and deleted == len(log):
            world.ends[place] = log[-1].next_offset
        del log[:deleted]


def compact(world: World, random: Random) -> None:
    """Legal: of each id only its newest record is left, and the gaps stay."""
    for log in world.state:
        newest = {batch.keys: batch for batch in log}
        log[:] = [batch for batch in log if newest[batch.keys] is batch]


def damage(world: World, random: Random) -> None:
    """A batch of the coordinator, or a marker, cannot be read."""
    logs = [log for log in (*world.state, *world.logs.values()) if log]
    if logs:
        log = random.choice(logs)
        at = random.randrange(len(log))
        log[at] = replace(log[at], spoil=lambda data: data[:-1] + bytes([data[-1] ^ 0xFF]))


Mutation = Callable[[World, Random], None]
WRONG: tuple[Mutation, ...] = (
    drop_marker, flip_marker, add_marker, former_coordinator, add_data, drop_record, contradict, age,
)  # fmt: skip
LEGAL: tuple[Mutation, ...] = (retention, compact)
