"""The list of sweeps. Owns the names; each sweep is its own module."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from chaos.sweeps import defects, delivery, in_flight, nightly, scenarios, seeds, sensitivity
from chaos.sweeps.model import Sweep, SweepError, Wanted

#: Name -> (what it is, how it is built).
SWEEPS: dict[str, tuple[str, Callable[[Wanted], Sweep]]] = {
    module.NAME: (module.SUMMARY, module.build)
    for module in (delivery, defects, sensitivity, seeds, in_flight, nightly, scenarios)
}


def find_sweep(name: str) -> Callable[[Wanted], Sweep]:
    """How that sweep is built. Raises SweepError with the nearest name."""
    if name not in SWEEPS:
        near = difflib.get_close_matches(name, SWEEPS, n=1)
        raise SweepError(
            f"unknown sweep {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(SWEEPS)}")
        )
    return SWEEPS[name][1]
