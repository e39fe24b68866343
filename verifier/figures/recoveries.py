"""How long brokers took to recover their logs after kills, and how much memory the run's processes used.

Owns these two figures, read from the run's files. A broker's journal has one ``logs-loaded`` entry per start
(``cluster.broker.loading``); a start after an unclean stop is a recovery. Judges nothing: the figures are in the
verdict and in the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.units import seconds_of_ms

LOADED = "logs-loaded"
#: The ratio is in seconds per this many bytes. For a smaller log, the fixed cost of a start dominates it.
PER_BYTES = 100_000_000
MB = 1_000_000
#: The index of the first memory sample that counts: what a process allocates to start is not growth.
WARM_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Recovery:
    """One start of a broker that had logs and had not stopped cleanly."""

    broker: int
    elapsed_ms: float
    size_bytes: int
    unflushed_bytes: int

    @property
    def seconds_per_unit(self) -> float | None:
        """Seconds per 100 MB of unflushed log; None if there was none."""
        return seconds_of_ms(self.elapsed_ms) * PER_BYTES / self.unflushed_bytes if self.unflushed_bytes else None


def recoveries(directory: RunDirectory) -> list[Recovery]:
    """All recoveries of a run. An unreadable journal adds none: for these figures it raises no doubt."""
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
    """The entry in ``verdict.json``: the count, the slowest recovery, and the worst ratio with its bytes."""
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
    """Resident memory in MB by process name: ``first`` and ``last`` sample, and ``peak``. Empty if none is readable.

    ``first`` is taken after the process has warmed up. A process that is restarted keeps its name and its samples.
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
