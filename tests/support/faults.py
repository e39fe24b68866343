"""Faults by what they hit, from the catalogue: a test that lists them by hand does not hold for the next one."""

from __future__ import annotations

from chaos.faults.breakable import LoadPart
from chaos.faults.catalogue import FAULTS


def of_zookeeper() -> tuple[str, ...]:
    """Those that break ZooKeeper itself."""
    return tuple(name for name, fault in FAULTS.items() if fault.hits == "zookeeper")


def of_loads(part: LoadPart | None = None) -> tuple[str, ...]:
    """Those that hit a part of the load, or this part of it."""
    parts = ("producers", "members") if part is None else (part,)
    return tuple(name for name, fault in FAULTS.items() if fault.needs_load in parts)


def of_closed_segments() -> tuple[str, ...]:
    """Those that hit what a log has only if its segments are small."""
    return tuple(name for name, fault in FAULTS.items() if fault.needs_closed_segments)


def among_replicas() -> tuple[str, ...]:
    """Those that only another replica shows to have bitten."""
    return tuple(name for name, fault in FAULTS.items() if fault.least_replicas > 1)


def of_coordinators() -> tuple[str, ...]:
    """Those that hit what only a load with transactions or groups keeps at work."""
    return tuple(name for name, fault in FAULTS.items() if fault.needs_coordinator is not None)
