"""Exact confidence bounds of a share, from how often something happened (Clopper and Pearson, 1934). Pure.

Exact, not an approximation: for 0 of 300, the upper bound is 1.2 percent. That is a little more than by the rule of
three (3 in 300), because half of the doubt is left to each side.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p

CONFIDENCE = 0.95
#: Halvings of the interval: more than a float can tell apart.
_STEPS = 60


def share_bounds(happened: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Between which shares the true one lies with this confidence; (0, 1) if nothing was tried.

    Raises ``ValueError`` for more than all, or fewer than none.
    """
    if not 0 <= happened <= of:
        raise ValueError(f"{happened} of {of}")
    if of == 0:
        return 0.0, 1.0
    doubt = (1 - confidence) / 2
    least = 0.0 if happened == 0 else _crossing(lambda share: 1 - _at_most(happened - 1, of, share) >= doubt)
    most = 1.0 if happened == of else _crossing(lambda share: _at_most(happened, of, share) <= doubt)
    return least, most


def _at_most(count: int, of: int, share: float) -> float:
    """The probability of ``count`` or fewer in as many tries. By logarithms: a coefficient may be beyond a float."""
    if not 0 < share < 1:
        return 1.0 if share <= 0 or count >= of else 0.0
    happens, not_so = log(share), log1p(-share)
    ways = (lgamma(of + 1) - lgamma(each + 1) - lgamma(of - each + 1) for each in range(count + 1))
    return sum(exp(each_ways + each * happens + (of - each) * not_so) for each, each_ways in enumerate(ways))


def _crossing(holds: Callable[[float], bool]) -> float:
    """The least share at which something holds that holds from there on."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
