"""ExponentialBackoff: pauses double, within their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.backoff import ExponentialBackoff
from cluster.seams.randomness import Random


@given(st.integers(0, 1 << 32), st.integers(1, 1000), st.integers(1, 60_000), st.integers(0, 1 << 40))
def test_a_pause_lies_within_its_bounds(seed, initial_ms, max_ms, failures):
    """Each pause is the doubled one +-20 %, never above the longest, however many failures there were."""
    delay_ms = ExponentialBackoff(initial_ms, max_ms, Random(seed)).delay_ms(failures)
    ideal_ms = min(initial_ms << min(failures, 20), max_ms)
    assert int(0.8 * ideal_ms) <= delay_ms <= min(max_ms, 1.2 * ideal_ms)


@pytest.mark.parametrize(("initial_ms", "max_ms", "pause_ms"), [(0, 1000, 0), (50, 50, 50), (100, 20, 20), (0, 0, 0)])
def test_a_single_pause(initial_ms, max_ms, pause_ms):
    """Without room to double there is one pause and no jitter."""
    backoff = ExponentialBackoff(initial_ms, max_ms, Random(1))
    assert {backoff.delay_ms(failures) for failures in range(5)} == {pause_ms}
