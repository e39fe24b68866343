"""How a benchmark measures: CPU time of a process, samples with their spread, and a result that is kept.

Owns the result file, ``results/bench/NAME-TIME.json``, and the table on standard output; progress goes to standard
error. Does not own what is measured. CPU time is the steady figure where others use the machine: throughput and
latency are only compared within one run, whose variants take turns.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

_Item = TypeVar("_Item")

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "bench"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, all threads, to the nanosecond. Raises ``OSError`` if it is gone.

    The clock id is Linux' (clock_getcpuclockid): psutil's figures come in ticks of 10 ms, too coarse for a short run.
    """
    return time.clock_gettime((~pid << 3) | 2)


def note(text: str) -> None:
    """A line of progress."""
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def quantile(samples: Iterable[float], share: float) -> float:
    """The sample that ``share`` of them do not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Samples:
    """One figure of one variant, sampled once a round."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.values: list[float] = []

    def __repr__(self) -> str:
        return f"<Samples {self.values} {self.unit}>"

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def summary(self) -> dict[str, Any]:
        values = self.values
        return {
            "unit": self.unit,
            "median": self.median,
            "min": min(values),
            "max": max(values),
            "count": len(values),
            "values": values,
        }


class Result:
    """The figures and bars of one benchmark. ``bars`` say what must hold and whether it does in this run."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self._settings = settings
        self._started = datetime.now(UTC)
        self._load_before = os.getloadavg()[0]
        self._figures: dict[str, Samples] = {}
        self._bars: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        return f"<Result {self.name}: {len(self._figures)} figures>"

    def add(self, figure: str, unit: str, value: float) -> None:
        """One more sample of a figure."""
        self._figures.setdefault(figure, Samples(unit)).values.append(value)

    def __contains__(self, figure: str) -> bool:
        return figure in self._figures

    def __getitem__(self, figure: str) -> Samples:
        return self._figures[figure]

    def ratios(self, figure: str, above: str, below: str) -> Samples:
        """A figure that is a ratio, round by round: what slowed a whole round down is in both."""
        for one, other in zip(self[above].values, self[below].values, strict=True):
            self.add(figure, "x", one / other)
        return self[figure]

    def bar(self, text: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
        """Note a bar, and whether this run is within it."""
        holds = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        self._bars.append({"bar": text, "value": value, "at_most": at_most, "at_least": at_least, "holds": holds})

    def finish(self) -> int:
        """Print the table, store the result; returns 0 if every bar holds and 1 if not."""
        width = max((len(name) for name in self._figures), default=10)
        print(f"\n{self.name}: {', '.join(f'{key} {value}' for key, value in self._settings.items())}")
        print(f"{'figure':<{width}}  {'median':>10} {'least':>10} {'most':>10}  unit, samples")
        for name, samples in self._figures.items():
            row = " ".join(f"{value:>10.4g}" for value in (samples.median, min(samples.values), max(samples.values)))
            print(f"{name:<{width}}  {row}  {samples.unit}, {len(samples.values)}")
        for bar in self._bars:
            limit = f"at most {bar['at_most']:g}" if bar["at_most"] is not None else f"at least {bar['at_least']:g}"
            print(f"{'holds' if bar['holds'] else 'FAILS'}: {bar['bar']} {bar['value']:.4g}, {limit}")
        path = self._store()
        print(f"stored: {path.relative_to(ROOT)}")
        return 0 if all(bar["holds"] for bar in self._bars) else 1

    def _store(self) -> Path:
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{self.name}-{self._started:%Y%m%dT%H%M%SZ}.json"
        content = {
            "benchmark": self.name,
            "settings": self._settings,
            "started": self._started.isoformat(),
            "ended": datetime.now(UTC).isoformat(),
            "commit": _git("rev-parse", "--short", "HEAD"),
            "changed_since_commit": bool(_git("status", "--porcelain", "--untracked-files=no")),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_before": self._load_before,
            "load_after": os.getloadavg()[0],
            "figures": {name: samples.summary() for name, samples in self._figures.items()},
            "bars": self._bars,
        }
        path.write_text(json.dumps(content, indent=1) + "\n")
        return path


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def rotated(variants: Sequence[_Item], round_number: int) -> list[_Item]:
    """The variants in another order each round: none is always the one after the heaviest."""
    at = round_number % len(variants)
    return [*variants[at:], *variants[:at]]
