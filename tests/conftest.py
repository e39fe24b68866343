"""What every test shares: hypothesis's profiles, and which tests run in one process when several processes run tests.

Hypothesis is derandomized in the gate, so a red run repeats.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile(
    "gate", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("full" if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else "gate")

ROOT = Path(__file__).resolve().parents[1]
#: Directories and a fixture that share what costs seconds to make: their tests stay in one process.
SHARING = ("tests/verifier/", "tests/cluster/metadata/")
SHARED = "shared_cluster"
#: Files of long tests that share nothing.
APART = ("test_run.py", "test_interrupt.py")


class Together(LoadScopeScheduling):
    """Hands out tests by file, and files that share something dear to one worker.

    pytest-xdist's own groups, made of marks, need a pytest older than 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file.endswith(APART) else _group(file)


@cache
def _group(file: str) -> str:
    shared = next((each for each in SHARING if file.startswith(each)), None)
    if shared is None and SHARED in (ROOT / file).read_text(encoding="utf-8"):
        return SHARED
    return shared or file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """In place of pytest-xdist's own."""
    return Together(config, log)
