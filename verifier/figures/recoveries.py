"""How brokers came up after kills, and how the harness's memory went: figures from the run's files. Pure but for them.

A broker's journal has one ``logs-loaded`` entry per start (``cluster.broker.loading``); those after an unclean stop
are recoveries. Judges nothing: the figures are in the verdict and in the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.units import seconds_of_ms

LOADED = "logs-loaded"
#: The unit of the ratio. Below it the fixed cost of a start says more than the ratio does.
PER_BYTES = 100_000_000
MB = 1_000_000
#: The sample with which memory is compared: what a process takes to start is not growth.
WARM_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Recovery:
    """One start of a broker after an unclean stop, with something in its logs."""

    broker: int
    elapsed_ms: float
    size_bytes: int
    unflushed_bytes: int

    @property
    def seconds_per_unit(self) -> float | None:
        """Seconds per 100 MB of unflushed log; None if there was none."""
        return seconds_of_ms(self.elapsed_ms) * PER_BYTES / self.unflushed_bytes if self.unflushed_bytes else None


def recoveries(directory: RunDirectory) -> list[Recovery]:
    """All recoveries of a run. A journal that cannot be read has none: it is no evidence of what clients were told."""
    found: list[Recovery] = []
    for broker in directory.broker_ids():
        try:
            found += _of(broker, directory.read_journal(broker))
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return found


def _of(broker: int, journal: Iterable[Mapping[str, Any]]) -> Iterable[Recovery]:
    for entry in journal:
        if entry.get("event") == LOADED and not entry["clean"] and entry["logs"]:
            yield Recovery(broker, float(entry["elapsed_ms"]), int(entry["bytes"]), int(entry["unflushed_bytes"]))


def summary(found: Iterable[Recovery]) -> dict[str, Any]:
    """What ``verdict.json`` says about them: how many, the slowest, and the worst ratio with the bytes it is over."""
    every = list(found)
    worst = max((each for each in every if each.unflushed_bytes), key=lambda e: e.seconds_per_unit or 0, default=None)
    ratio = None if worst is None else worst.seconds_per_unit
    return {
        "count": len(every),
        "longest_ms": max((each.elapsed_ms for each in every), default=None),
        "unflushed_bytes": max((each.unflushed_bytes for each in every), default=None),
        "worst_s_per_100_mb": None if ratio is None else round(ratio, 2),
        "worst_unflushed_bytes": None if worst is None else worst.unflushed_bytes,
    }


def memory(directory: RunDirectory) -> dict[str, dict[str, float]]:
    """Resident megabytes by process: ``first`` and ``last`` sample, and ``peak``. Empty if none can be read.

    The first is that of a warmed-up process; samples of one name continue through its restarts.
    """
    samples: dict[str, list[float]] = defaultdict(list)
    try:
        for entry in directory.read_resources():
            for name, size_bytes in dict(entry.get("rss_bytes") or {}).items():
                samples[name].append(float(size_bytes) / MB)
    except (OSError, ValueError, TypeError):
        return {}
    return {
        name: {
            "first": round(sizes[: WARM_SAMPLE + 1][-1], 1),
            "last": round(sizes[-1], 1),
            "peak": round(max(sizes), 1),
        }
        for name, sizes in sorted(samples.items())
    }
