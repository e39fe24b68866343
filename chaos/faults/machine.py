"""The interface of a broker's machine to faults: its disk, its clock and its memory. Owns only the interface.

``chaos.conductor.broker_machine`` implements it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class MachineState:
    """What a broker's process reports about its own disk and clock.

    ``failed_calls``, ``syncs`` and ``delayed_syncs`` count since its start. ``ahead_ms`` is how far its wall clock is
    ahead of the conductor's, as measured.
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
    """A flipped bit: the name of its segment, the byte's position in it, and the base offset of its batch."""

    segment: str
    position: int
    offset: int


class Machine(Protocol):
    """Disk, clock and memory of one broker."""

    async def fail(self, calls: Collection[str], error: str, seed: int) -> None:
        """Make these calls to the disk fail with this error (such as ``EIO``) from now on."""
        ...

    async def heal(self) -> None:
        """Make disk calls succeed again."""
        ...

    async def delay_syncs(self, delay_ms: int) -> None:
        """Make each sync take this much longer; 0 ends that."""
        ...

    async def set_clock(self, ahead_ms: int, drift_ppm: int) -> None:
        """Move the wall clock ahead, and make it run faster by ``drift_ppm``. 0 and 0 restore the real clock."""
        ...

    async def see(self) -> MachineState | None:
        """The current state; None if the process does not answer."""
        ...

    async def lose_power(self, seed: int, word: str) -> int:
        """Kill the process and remove unsynced data from files with ``word`` in their paths. Returns the lost bytes."""
        ...

    async def failures(self) -> int:
        """The number of recorded disk calls that failed, over all processes of this broker."""
        ...

    async def take_memory(self, spare_kb: int) -> None:
        """Keep the process from getting more memory, and use up its free memory except ``spare_kb`` KiB.

        The process may end before it answers, which is not an error.
        """
        ...

    async def give_memory(self) -> None:
        """Lift the memory limit, and free what was used up. Raises ``OSError`` if the process has ended."""
        ...

    async def memory_limit(self) -> int | None:
        """The limit on the address space of the process in bytes; None if there is none."""
        ...

    async def halts(self) -> int:
        """How often this broker has halted for lack of memory, over all of its processes."""
        ...

    async def loaded(self) -> Mapping[str, Any]:
        """The last entry about loading logs in the broker's journal; empty if there is none."""
        ...

    async def remove(self, directory: str, endings: Collection[str]) -> list[LostFile]:
        """Remove the files with these endings from a subdirectory of the data directory ("": the directory itself)."""
        ...

    async def present(self, files: Collection[str]) -> int:
        """How many of these files in the data directory exist and are not empty."""
        ...

    async def remove_directory(self, directory: str) -> None:
        """Remove a subdirectory of the data directory with everything in it."""
        ...

    async def wipe(self) -> int:
        """Remove everything in the data directory of a broker that is down. Returns the bytes that its files had."""
        ...

    async def held_bytes(self) -> int:
        """The bytes of all segments in the data directory."""
        ...

    async def directories(self, prefix: str) -> tuple[str, ...]:
        """The subdirectories of the data directory with this prefix, including those of deleted replicas."""
        ...

    async def segments(self, directory: str) -> int:
        """The number of segments in a subdirectory of the data directory."""
        ...

    async def flip_bit(self, directory: str, seed: int) -> FlippedBit | None:
        """Flip a bit in a closed segment of a subdirectory; None if it has no closed segment."""
        ...

    async def bad_batches(self, directory: str) -> int:
        """The number of batches with a wrong checksum in a subdirectory of the data directory."""
        ...

    async def reads_damage(self, topic: str, partition: int, offset: int) -> bool:
        """Whether a consumer that reads from this broker finds that the batch at this offset is damaged."""
        ...
