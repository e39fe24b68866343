"""The estimate of what compression leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.producer.compression_ratio import CompressionRatioEstimator


def test_it_improves_slowly_and_worsens_at_once():
    """A better batch lowers it by 0.005 at most; a worse one raises it by 0.05 at least, or to what was seen."""
    ratios = CompressionRatioEstimator()
    assert ratios.estimate("t", 4) == 1.0
    assert ratios.update("t", 4, 0.3) == pytest.approx(0.995)
    assert ratios.update("t", 4, 0.994) == pytest.approx(0.994)
    assert ratios.update("t", 4, 0.995) == pytest.approx(1.044)
    assert ratios.update("t", 4, 1.2) == pytest.approx(1.2)
    assert ratios.update("t", 4, 1.2) == pytest.approx(1.2)
    assert (ratios.estimate("t", 1), ratios.estimate("u", 4)) == (1.0, 1.0)


def test_after_a_batch_that_was_too_large():
    """It starts again from 1.0, or from the ratio of that batch if even that is too little."""
    ratios = CompressionRatioEstimator()
    ratios.update("t", 4, 0.2)
    ratios.reset("t", 4, 0.4)
    assert ratios.estimate("t", 4) == 1.0
    ratios.reset("t", 4, 1.3)
    assert ratios.estimate("t", 4) == 1.3


@given(st.lists(st.floats(0.01, 1.5), max_size=50))
def test_it_stays_between_what_was_seen(observed):
    """It never falls below what was ever seen, nor rises more than a step above it."""
    ratios = CompressionRatioEstimator()
    for ratio in observed:
        ratios.update("t", 1, ratio)
        assert min(1.0, *observed) <= ratios.estimate("t", 1) <= max(1.0, *observed) + 0.05
        assert ratios.estimate("t", 1) >= ratio
