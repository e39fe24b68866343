"""Exact confidence bounds of a share, from how often something happened (Clopper and Pearson, 1934). Pure.

For 0 of 300, the upper bound is 1.2 percent. The rule of three gives a little less (3 in 300), because it is one-sided;
here, each side gets half of the error probability. Does not own what is counted (``sensitivity_figures``).
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p

CONFIDENCE = 0.95
#: The number of bisections; enough to exhaust the precision of a float.
_STEPS = 60


def share_bounds(happened: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The bounds of the true share with this confidence, if something happened ``happened`` times in ``of`` tries.

    Both are from 0 to 1, and (0, 1) if ``of`` is 0. Raises ``ValueError`` unless 0 <= ``happened`` <= ``of``.
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
    """The probability of at most ``count`` successes in ``of`` tries. By logarithms, as coefficients may be huge."""
    if not 0 < share < 1:
        return 1.0 if share <= 0 or count >= of else 0.0
    happens, not_so = log(share), log1p(-share)
    ways = (lgamma(of + 1) - lgamma(each + 1) - lgamma(of - each + 1) for each in range(count + 1))
    return sum(exp(each_ways + each * happens + (of - each) * not_so) for each, each_ways in enumerate(ways))


def _crossing(holds: Callable[[float], bool]) -> float:
    """The least share from 0 to 1 at which ``holds`` is true, if it is also true for every larger share."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
