"""JumpingClock: a broker's clock whose time of day can be set. Owns that form of the Clock seam."""

from __future__ import annotations

from tests.support.virtual_time import LoopClock


class JumpingClock(LoopClock):
    """``ahead_ms`` is how far the time of day is from everybody else's."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall_ns(self) -> int:
        return super().wall_ns() + self.ahead_ms * 1_000_000
