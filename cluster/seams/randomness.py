"""Random: every random draw comes from a generator that was derived from the run's seed by name.

Owns the derivation. Does not own any draw.
"""

from __future__ import annotations

import hashlib
import secrets
from random import Random

__all__ = ["Random", "derive", "fresh_seed"]


def derive(seed: int, *names: str | int) -> Random:
    """A generator for one purpose: the same seed and names give the same draws, other names independent ones.

    ``derive(7, "schedule")`` and ``derive(7, "toxic", "b1-b2", 3)`` do not disturb each other.
    """
    text = "/".join([str(seed), *(str(name) for name in names)])
    return Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def fresh_seed() -> int:
    """A seed for a run that was given none: 32 bits, so that it is easily typed again."""
    return secrets.randbits(32)
