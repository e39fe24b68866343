"""The list of sweeps. Owns the list; each sweep's module owns its name and matrix."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from chaos.sweeps import defects, delivery, in_flight, nightly, scenarios, seeds, sensitivity
from chaos.sweeps.model import Sweep, SweepError, Wanted

#: Name -> (summary, function that builds the sweep).
SWEEPS: dict[str, tuple[str, Callable[[Wanted], Sweep]]] = {
    module.NAME: (module.SUMMARY, module.build)
    for module in (delivery, defects, sensitivity, seeds, in_flight, nightly, scenarios)
}


def find_sweep(name: str) -> Callable[[Wanted], Sweep]:
    """The function that builds this sweep. Raises SweepError, which suggests the nearest name."""
    if name not in SWEEPS:
        near = difflib.get_close_matches(name, SWEEPS, n=1)
        raise SweepError(
            f"unknown sweep {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(SWEEPS)}")
        )
    return SWEEPS[name][1]
