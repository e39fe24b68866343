"""The machine under one broker, its disk, clock and memory: what a fault may do to it and observe. Owns the shapes
only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class MachineState:
    """What a broker's process says about its own disk and clock.

    ``failed_calls``, ``syncs`` and ``delayed_syncs`` count from its start. ``ahead_ms`` is the measured difference
    between its wall clock and the conductor's.
    """

    failed_calls: int
    syncs: int
    delayed_syncs: int
    longest_sync_ms: int
    last_sync_ms: int
    is_well: bool
    unsynced_bytes: int
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file that was removed: its path in the data directory, and its size."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FlippedBit:
    """A flipped bit: its segment, the byte, and the first offset of the batch."""

    segment: str
    position: int
    offset: int


class Machine(Protocol):
    """Disk, clock and memory of one broker."""

    async def fail(self, calls: Collection[str], error: str, seed: int) -> None:
        """Make these calls to the disk fail with this error (``EIO``) from now on."""
        ...

    async def heal(self) -> None:
        """Make calls succeed again."""
        ...

    async def delay_syncs(self, delay_ms: int) -> None:
        """Make each sync take this much longer; 0 to stop."""
        ...

    async def set_clock(self, ahead_ms: int, drift_ppm: int) -> None:
        """Set the wall clock's lead and how much faster it runs; 0 and 0 for the real one."""
        ...

    async def see(self) -> MachineState | None:
        """None if the process does not answer."""
        ...

    async def lose_power(self, seed: int, word: str) -> int:
        """Kill the process and remove what was not synced in files with ``word`` in their paths; returns the bytes
        lost."""
        ...

    async def failures(self) -> int:
        """The number of failed calls on record, over all lives of the broker."""
        ...

    async def take_memory(self, spare_kb: int) -> None:
        """Have the process get no more memory, and take what it has free but for this. It may end before it answers."""
        ...

    async def give_memory(self) -> None:
        """Lift the limit, and give back what was taken. Raises ``OSError`` if the process has ended."""
        ...

    async def memory_limit(self) -> int | None:
        """How far the system lets the address space of the process grow; None if without end."""
        ...

    async def halts(self) -> int:
        """How often the broker has halted since it got no more memory, over all of its lives."""
        ...

    async def loaded(self) -> Mapping[str, Any]:
        """What the broker's journal last said about loading its logs."""
        ...

    async def remove(self, directory: str, endings: Collection[str]) -> list[LostFile]:
        """Remove the files with these endings from a directory in the data directory (``""``: itself)."""
        ...

    async def present(self, files: Collection[str]) -> int:
        """How many of these files in the data directory exist and are not empty."""
        ...

    async def remove_directory(self, directory: str) -> None:
        """Remove a directory of the data directory with all that is in it."""
        ...

    async def wipe(self) -> int:
        """Remove all that is in the data directory of a broker that is down; the bytes that its files had."""
        ...

    async def held_bytes(self) -> int:
        """The bytes of the segments in the data directory."""
        ...

    async def directories(self, prefix: str) -> tuple[str, ...]:
        """The directories in the data directory whose names begin so, those of deleted replicas among them."""
        ...

    async def segments(self, directory: str) -> int:
        """How many segments there are in a directory of the data directory."""
        ...

    async def flip_bit(self, directory: str, seed: int) -> FlippedBit | None:
        """Flip a bit in one of its closed segments; None if it has none."""
        ...

    async def bad_batches(self, directory: str) -> int:
        """How many batches in it have a wrong checksum."""
        ...

    async def reads_damage(self, topic: str, partition: int, offset: int) -> bool:
        """Whether a reader of this broker finds the batch at this offset to be damaged."""
        ...
