"""What a fault may do to the disk and the clock of one broker, and what it may see of them. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class InnerState:
    """What a broker's process says about its own disk and clock.

    ``failed_calls``, ``syncs`` and ``delayed_syncs`` count since its start. ``ahead_ms`` is how far its time of day is
    from the conductor's, measured.
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
    """A bit that is not what was written: the segment, the byte, and the first offset of the batch."""

    segment: str
    position: int
    offset: int


class Insides(Protocol):
    """Disk and clock of one broker."""

    async def fail(self, calls: Collection[str], error: str, seed: int) -> None:
        """Let these calls of the disk fail with this error (``EIO``) from now on."""
        ...

    async def heal(self) -> None:
        """Let no call fail."""
        ...

    async def delay_syncs(self, delay_ms: int) -> None:
        """Let each sync take this much longer; 0 for no longer."""
        ...

    async def set_clock(self, ahead_ms: int, drift_ppm: int) -> None:
        """Set the time of day, and how much faster it runs; 0 and 0 for the machine's."""
        ...

    async def see(self) -> InnerState | None:
        """None if the process does not answer."""
        ...

    async def lose_power(self, seed: int, word: str) -> int:
        """End the process and take what was not synced, of files with ``word`` in their paths; the bytes lost."""
        ...

    async def failures(self) -> int:
        """Failed calls on record, of all lives of the broker."""
        ...

    async def loaded(self) -> Mapping[str, Any]:
        """What the broker's journal says last about loading its logs."""
        ...

    async def remove(self, directory: str, endings: Collection[str]) -> list[LostFile]:
        """Remove the files with these endings from a directory in the data directory (``""``: itself)."""
        ...

    async def present(self, files: Collection[str]) -> int:
        """How many of these files of the data directory there are, and hold something."""
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
        """Whether a reader of this broker finds the batch at this offset damaged."""
        ...
