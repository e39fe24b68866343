"""Disk, clock and memory of a broker that exists only as numbers, for tests of faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.faults.machine import FlippedBit, LostFile, MachineState


@dataclass
class FakeMachine:
    """``end`` ends the broker's process; ``deaf`` makes whatever is done to it do nothing. Each look sees a sync."""

    end: Callable[[], None]
    deaf: bool = False
    failing: bool = False
    failed: int = 0
    delay_ms: int = 0
    delayed: int = 0
    syncs: int = 0
    ahead_ms: int = 0
    flipped: bool = False
    held: int = 100
    limit: int | None = None
    halted: int = 0
    halts_with_words: bool = True
    files: dict[str, int] = field(default_factory=lambda: {"a.index": 5, "b-checkpoint": 7})

    #: Directories of replicas, which ``FakeOrders`` makes and removes.
    logs: set[str] = field(default_factory=set)
    closed: int = 2

    async def directories(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(name for name in self.logs if name.startswith(prefix)))

    async def fail(self, calls: Collection[str], error: str, seed: int) -> None:
        if not self.deaf and calls and error:
            self.failing = True
            self.failed += 1
            self.end()

    async def heal(self) -> None:
        self.failing = False

    async def delay_syncs(self, delay_ms: int) -> None:
        self.delay_ms = 0 if self.deaf else delay_ms

    async def set_clock(self, ahead_ms: int, drift_ppm: int) -> None:
        self.ahead_ms = 0 if self.deaf else ahead_ms + drift_ppm // 250

    async def see(self) -> MachineState | None:
        self.syncs += 1
        self.delayed += self.delay_ms > 0
        is_well = not self.failing and not self.delay_ms
        return MachineState(
            self.failed, self.syncs, self.delayed, self.delay_ms, self.delay_ms, is_well, 100, self.ahead_ms
        )

    async def lose_power(self, seed: int, word: str) -> int:
        if self.deaf:
            return 0
        self.end()
        return 100

    async def failures(self) -> int:
        return self.failed

    async def take_memory(self, spare_kb: int) -> None:
        """Whoever has so little wants more at once."""
        if not self.deaf:
            self.limit = spare_kb
            self.halted += self.halts_with_words
            self.end()

    async def give_memory(self) -> None:
        self.limit = None

    async def memory_limit(self) -> int | None:
        return self.limit

    async def halts(self) -> int:
        return self.halted

    async def loaded(self) -> Mapping[str, Any]:
        return {"clean": False, "unflushed_bytes": 100}

    async def remove(self, directory: str, endings: Collection[str]) -> list[LostFile]:
        return [] if self.deaf else [LostFile(name, size) for name, size in self.files.items()]

    async def remove_directory(self, directory: str) -> None:
        self.flipped = False

    async def wipe(self) -> int:
        lost = 0 if self.deaf else self.held
        self.held -= lost
        return lost

    async def held_bytes(self) -> int:
        return self.held

    async def segments(self, directory: str) -> int:
        return self.closed + 1

    async def flip_bit(self, directory: str, seed: int) -> FlippedBit | None:
        self.flipped = not self.deaf
        return FlippedBit("0.log", 100, 7)

    async def bad_batches(self, directory: str) -> int:
        return int(self.flipped)

    async def reads_damage(self, topic: str, partition: int, offset: int) -> bool:
        return self.flipped and offset == 7

    async def present(self, files: Collection[str]) -> int:
        return len(files)
