"""Fixtures and profiles that every test shares. Hypothesis is derandomized in the gate, so a red run repeats."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "gate", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("full" if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else "gate")
