"""Confidence bounds of a share, beside those of another library and the rule of three."""

from __future__ import annotations

import pytest
from scipy.stats import beta

from chaos.sweeps.confidence import share_bounds


@pytest.mark.parametrize(("happened", "of"), [(0, 1), (1, 1), (0, 5), (5, 5), (3, 7), (19, 20), (1, 1000), (700, 1500)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_exact_bounds(happened: int, of: int, confidence: float) -> None:
    """They are quantiles of beta distributions (Clopper-Pearson), and 0 or 1 where nothing or all happened."""
    doubt = (1 - confidence) / 2
    least = beta.ppf(doubt, happened, of - happened + 1) if happened else 0.0
    most = beta.ppf(1 - doubt, happened + 1, of - happened) if happened < of else 1.0
    assert share_bounds(happened, of, confidence) == pytest.approx((least, most), abs=1e-9)


def test_the_rule_of_three() -> None:
    """Of none in n, at most 3/n with 95 percent confidence to that side alone."""
    assert share_bounds(0, 300, 0.9)[1] == pytest.approx(3 / 300, rel=0.01)


def test_nothing_tried_says_nothing() -> None:
    """Without a try, any share is possible."""
    assert share_bounds(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("happened", "of"), [(2, 1), (-1, 1)])
def test_what_cannot_be(happened: int, of: int) -> None:
    """More than all, fewer than none."""
    with pytest.raises(ValueError, match=f"{happened} of {of}"):
        share_bounds(happened, of)
