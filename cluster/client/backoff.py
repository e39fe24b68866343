"""Pauses between attempts: doubling from a first to a longest one, with jitter (KIP-580, KIP-601).

Owns the arithmetic, for retries, metadata and connections alike. Does not own what is tried again, nor any timer.
"""

from __future__ import annotations

from cluster.seams.randomness import Random

_FACTOR = 2
_JITTER = 0.2


class ExponentialBackoff:
    """Pauses in milliseconds: ``initial_ms`` times 2 to the power of ``failures``, +-20 %, at most ``max_ms``.

    Where the two are equal, or the first is the longer, there is one pause, ``max_ms``, and no jitter.
    """

    __slots__ = ("_initial_ms", "_max_ms", "_random")

    def __init__(self, initial_ms: int, max_ms: int, random: Random) -> None:
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._random = random

    def __repr__(self) -> str:
        return f"ExponentialBackoff({self._initial_ms} to {self._max_ms} ms)"

    def delay_ms(self, failures: int) -> int:
        """The pause after ``failures`` failures before the last one: 0 gives the first pause."""
        if self._initial_ms in (0, self._max_ms):
            return self._initial_ms
        delay_ms = self._initial_ms
        while failures > 0 and delay_ms < self._max_ms:
            delay_ms *= _FACTOR
            failures -= 1
        base_ms = min(delay_ms, self._max_ms)
        return min(self._max_ms, int(base_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER)))
