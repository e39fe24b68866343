"""Draws the size and the key of each record from its number alone, so that a run with the same seed repeats them. Pure.

Sizes are written as a number of bytes, ``{uniform: {least: 100, most: 2000}}`` or ``{lognormal: {median: 300, sigma:
1.0, least: 48, most: 20000}}``; keys as ``none``, ``{uniform: {keys: 1000}}`` or ``{zipf: {keys: 1000, exponent:
1.1}}``.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from typing import Any

from loadgen.spec import SpecError, numbers_of, one_of

#: Sizes as they are written in YAML and JSON.
SizeSpec = int | Mapping[str, Any]
KeySpec = str | Mapping[str, Any]

#: A value has at least its sequenced header (``verifier.evidence.sequenced_value``, which takes numpy to load).
LEAST_BYTES = 48
#: The largest record that brokers and clients accept with any settings.
MOST_BYTES = 64 * 1024 * 1024
MOST_KEYS = 1_000_000
#: The number of quantiles that represent a lognormal distribution.
QUANTILES = 1024
_MASK = 2**64 - 1
_KEY = b"key-%d"


def unit(seed: int, number: int) -> float:
    """A pseudorandom number in [0, 1) that depends only on the arguments (splitmix64)."""
    mixed = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / 9007199254740992.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of values in bytes, including the header. The entries of ``table`` ascend and are equally likely."""

    table: Sequence[int]

    @property
    def most(self) -> int:
        return self.table[-1]

    @property
    def mean(self) -> float:
        return sum(self.table) / len(self.table)

    @property
    def is_constant(self) -> bool:
        return len(self.table) == 1

    def of(self, seed: int, number: int) -> int:
        """The size of one record."""
        table = self.table
        return table[0] if len(table) == 1 else table[int(unit(seed, number) * len(table))]


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of records; none if ``count`` is 0. ``cumulative`` has the cumulative weights of an uneven distribution."""

    count: int = 0
    cumulative: array[float] | None = None

    @property
    def most_bytes(self) -> int:
        """The size of the longest key; 0 if there is none."""
        return len(_KEY % (self.count - 1)) if self.count else 0

    def of(self, seed: int, number: int) -> bytes | None:
        """The key of one record."""
        if not self.count:
            return None
        # another seed than for the size, so that both are independent
        chosen = unit(~seed & _MASK, number)
        if self.cumulative is None:
            return _KEY % int(chosen * self.count)
        return _KEY % bisect_right(self.cumulative, chosen * self.cumulative[-1])


def parse_sizes(spec: SizeSpec) -> Sizes:
    """Parse sizes as they are written in YAML. Raises SpecError."""
    if isinstance(spec, int) and not isinstance(spec, bool):
        return Sizes((_bounds(spec, spec)[0],))
    name, value = one_of("value_bytes", spec, ("uniform", "lognormal"))
    if name == "uniform":
        least, most = _bounds(*numbers_of(name, value, ("least", "most")))
        return Sizes(range(least, most + 1))
    median, sigma, low, high = numbers_of(name, value, ("median", "sigma", "least", "most"), {"least": LEAST_BYTES})
    least, most = _bounds(low, high)
    if not (least <= median <= most and 0 < sigma <= 10):
        raise SpecError(f"lognormal needs least <= median <= most and a sigma above 0 and at most 10, not {value}")
    normal = NormalDist(math.log(median), sigma)
    below, above = normal.cdf(math.log(least)), normal.cdf(math.log(most))
    at = [below + (above - below) * (number + 0.5) / QUANTILES for number in range(QUANTILES)]
    return Sizes([min(most, max(least, round(math.exp(normal.inv_cdf(each))))) for each in at])


def parse_keys(spec: KeySpec) -> Keys:
    """Parse keys as they are written in YAML. Raises SpecError."""
    name, value = one_of("keys", spec, ("none", "uniform", "zipf"))
    if name == "none":
        return Keys()
    if name == "uniform":
        return Keys(_count(*numbers_of(name, value, ("keys",))))
    number, exponent = numbers_of(name, value, ("keys", "exponent"), {"exponent": 1.0})
    if not 0 < exponent <= 10:
        raise SpecError(f"the exponent of zipf must be above 0 and at most 10, not {exponent:g}")
    count = _count(number)
    return Keys(count, array("d", accumulate(rank**-exponent for rank in range(1, count + 1))))


def _bounds(low: float, high: float) -> tuple[int, int]:
    least, most = int(low), int(high)
    if least != low or most != high or not LEAST_BYTES <= least <= most <= MOST_BYTES:
        raise SpecError(
            f"values have at least {LEAST_BYTES} bytes, those of their sequenced header, and at most {MOST_BYTES}; "
            f"not {low:g}{'' if low == high else f' to {high:g}'}"
        )
    return least, most


def _count(number: float) -> int:
    if number != int(number) or not 1 <= number <= MOST_KEYS:
        raise SpecError(f"keys must be a number from 1 to {MOST_KEYS}, not {number:g}")
    return int(number)
