"""What changes a small world of transactions: what is wrong, what is legal, and damage. Judges nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.support.stories import MADE_MS, Batch
from tests.support.transaction_bytes import ABORT, COMMIT, EMPTY, TRANSACTIONAL, marker
from tests.verifier.transactions.worlds import World, renumber


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
