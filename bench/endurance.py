"""A long load with faults: does every load process stay as large as it is, and what does a record cost in the history.

    python -m bench endurance [--records N] [--rate N] [--load-processes N] [--client C] [--faults F] [--of DIR]

Starts ``gapless run`` with ten million records of 100 B (1,000 s at 10,000/s) and reads what it left: the resident
memory of each load process, sampled every ten seconds by the conductor, and the bytes of all histories (those of the
readers and of the final read included) for each acknowledged record. Bars: the verdict is valid, all records were
acknowledged, no load process grows by more than 5 % after its first minute, and a record takes less than 10 bytes.
Exit status 0 if all hold, 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.measure import ROOT, Result, note
from verifier.evidence.run_directory import RunDirectory

RECORD_BYTES = 100
#: What a process takes to start is not growth: imports, connections, the first buffers.
SETTLED_AFTER_S = 60.0
GROWTH_BAR = 1.05
BYTES_BAR = 10.0
LOAD = ("producers", "readers")


class Memory(NamedTuple):
    """One process: seconds since the first sample and resident megabytes, in order of time."""

    curve: list[tuple[float, float]]

    @property
    def settled(self) -> list[float]:
        """The samples after the first minute."""
        return [size for seconds, size in self.curve if seconds >= SETTLED_AFTER_S]

    @property
    def growth(self) -> float:
        """The last sample in terms of the first after the first minute; infinite if the run was too short for it."""
        return self.settled[-1] / self.settled[0] if len(self.settled) > 1 else math.inf

    def minutes(self) -> list[float]:
        """One sample a minute, to be read as a curve."""
        found: dict[int, float] = {}
        for seconds, size in self.curve:
            found.setdefault(int(seconds // 60), size)
        return list(found.values())


def memory_of(directory: RunDirectory) -> dict[str, Memory]:
    """The curves of the load's processes, by name."""
    samples = directory.read_resources()
    curves: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        seconds = (sample["time_ns"] - samples[0]["time_ns"]) / 1e9
        for name, size in sample["rss_bytes"].items():
            if name.startswith(LOAD):
                curves.setdefault(name, []).append((seconds, size / 1e6))
    return {name: Memory(curve) for name, curve in sorted(curves.items())}


def history_bytes(directory: RunDirectory) -> dict[str, int]:
    """The size of each history."""
    return {path.name: path.stat().st_size for path in sorted(directory.history_dir.glob("*.arrow"))}


def _run(arguments: argparse.Namespace, out: Path) -> None:
    seconds = arguments.records / arguments.rate
    command = [
        *(sys.executable, "-m", "chaos.commands.main", "run", "--out", str(out), "--name", "endurance"),
        *("--time-limit", f"{seconds:.0f}", "--rate", str(arguments.rate), "--record-bytes", str(RECORD_BYTES)),
        *("--load-processes", str(arguments.load_processes), "--client", arguments.client),
        *("--faults", arguments.faults, "--seed", str(arguments.seed)),
    ]
    note(" ".join(command[3:]))
    subprocess.run(command, cwd=ROOT, check=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench endurance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--load-processes", type=int, default=2)
    parser.add_argument("--client", default="confluent")
    parser.add_argument("--faults", default="basic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the run directory (a new temporary one)")
    parser.add_argument("--of", type=Path, metavar="DIR", help="run nothing: read this run directory")
    return parser.parse_args()


def main() -> int:
    """Run, read, print. Returns the exit status."""
    arguments = _options()
    out = (arguments.of or arguments.out or Path(tempfile.mkdtemp(prefix="gapless-endurance-"))).resolve()
    result = Result("endurance", {key: str(value) for key, value in vars(arguments).items()})
    if arguments.of is None:
        _run(arguments, out)
    directory = RunDirectory(out)
    verdict = json.loads(directory.verdict_json.read_text()) if directory.verdict_json.exists() else {}
    acked = int(verdict.get("stats", {}).get("acked", 0))
    sizes, curves = history_bytes(directory), memory_of(directory)
    print(f"verdict {verdict.get('verdict', 'none')}, {acked:,} records acknowledged; {directory.path}")
    for name, memory in curves.items():
        print(f"{name:<14} MB each minute: {' '.join(f'{size:.0f}' for size in memory.minutes())}")
        for _seconds, size in memory.curve:
            result.add(f"memory of {name}", "MB", size)
        result.bar(f"growth of {name} after its first minute", memory.growth, at_most=GROWTH_BAR)
    for name, size in sizes.items():
        result.add(f"history of {name}", "bytes a record", size / max(1, acked))
    result.bar("bytes a record in all histories", sum(sizes.values()) / max(1, acked), at_most=BYTES_BAR)
    result.bar("records acknowledged", acked, at_least=arguments.records)
    result.bar("verdict valid", verdict.get("verdict") == "valid", at_least=1)
    result.bar("load processes measured", len(curves), at_least=2)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
