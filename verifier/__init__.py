"""verifier: judges a run from its evidence (what clients were told, what disks hold, what readers saw).

``verify`` is the one entry; ``python -m verifier.main RUN_DIR...`` is the same in a process of its own. Importing this
loads neither pyspark nor pandas, and nothing of the verifier: what is taken from here is loaded when it is asked for,
for most that come through want the evidence's layout alone.

The modules beside this one are the way through, from run directories to verdicts: ``verify_runs`` has the order of the
steps. Each package is a room with one concept (docs/design.md "Rooms").
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verifier.verdict import Verdict
    from verifier.verify_runs import verify

__all__ = ["Verdict", "verify"]

_HOMES = {"Verdict": "verifier.verdict", "verify": "verifier.verify_runs"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
