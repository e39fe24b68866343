"""How many examples a hypothesis test draws whose examples cost much: fewer in the gate than others, and as many in the
full suite.

Owns the choice between the two numbers. The profiles for all other tests are in ``tests/conftest.py``.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings


def examples(gate: int, full: int = 1000, **others: Any) -> settings:
    """Settings of one test: ``gate`` examples in ``make test``, ``full`` in ``make test-full``."""
    return settings(max_examples=full if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else gate, **others)
