"""The workload of a run as ``run.json`` has it: whether its producers have transactions, and its group an output. Pure.

Owns these answers alone; what follows from them is each module's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifier.evidence.run_model import RunModel

#: The kinds of workloads whose producers have a ``transactional.id``.
_TRANSACTIONAL = ("transactions", "bank")


def workload_of(run: RunModel) -> Mapping[str, Any]:
    """All of it; empty if ``run.json`` does not say."""
    resolved = run.experiment.get("resolved")
    workload = resolved.get("workload") if isinstance(resolved, dict) else None
    return workload if isinstance(workload, dict) else {}


def transactions_asked(run: RunModel) -> Mapping[str, object] | None:
    """What the workload's transactions are to be; None if its producers have none."""
    asked = workload_of(run)
    return asked.get("transactions") or {} if asked.get("kind") in _TRANSACTIONAL else None
