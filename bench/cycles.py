"""A million transactions with planted circles: what it costs to read them, to judge them, and to find the circles.

    python -m bench cycles [--rounds N] [--transactions N] [--circles N] [--chain N]

Each round is a process of its own that reads one EDN file (with one more process for each further core) and judges it,
with and without ``--ww-deps``. Owns the bar: every circle found, of its planted length, in under 60 s once Python has
started.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.measure import Result, note
from tests.support.long_operations import plan, write_operations

BAR_S = 60.0
WAYS = ("wr", "ww-deps")
#: This process and its children; of their memory, the peak of the largest one counts.
_WHOSE = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def measure(path: Path, way: str) -> dict[str, float | list[int]]:
    """Seconds of each step, and the lengths of the circles found. For a process of its own."""
    from verifier.operations import cycles
    from verifier.operations.options import JudgeOptions
    from verifier.operations.reading import read_operations
    from verifier.operations.verify_history import judge

    started, cpu = time.perf_counter(), _cpu_s()
    history = read_operations(path)
    read_s, read_cpu_s = time.perf_counter() - started, _cpu_s() - cpu
    judged = judge(history, JudgeOptions(ww_deps=way == "ww-deps"), path)
    lengths = [len(cycle.steps) for name in cycles.CLASSES for cycle in judged.findings[name].cycles]
    shortest = all(cycle.is_shortest for name in cycles.CLASSES for cycle in judged.findings[name].cycles)
    return {
        "read": read_s,
        "read CPU": read_cpu_s,
        "all": time.perf_counter() - started,
        "all CPU": _cpu_s() - cpu,
        "memory": sum(resource.getrusage(whose).ru_maxrss for whose in _WHOSE) / 1024,
        "lengths": lengths,
        "proven": float(shortest),
    }


def _cpu_s() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(whose) for whose in _WHOSE]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--circles", type=int, default=20)
    parser.add_argument("--chain", type=int, default=20_000, help="transactions of the long circle (20000)")
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(Path(options.measure[0]), options.measure[1])))
        return 0
    planned = plan(options.transactions, options.circles, options.chain)
    settings = {"rounds": options.rounds, "transactions": options.transactions, "chain": options.chain}
    result = Result("cycles", settings)
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as name:
        path = Path(name) / "history.edn"
        note("writing the history")
        write_operations(path, planned)
        result.add("file", "MB", path.stat().st_size / 1e6)
        missed = 0
        for round_number in range(options.rounds):
            for way in WAYS:
                note(f"{way}, round {round_number + 1} of {options.rounds}")
                argv = [sys.executable, "-m", "bench.cycles", "--measure", str(path), way]
                done = subprocess.run(argv, check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)
                for figure, unit in (
                    ("read", "s"),
                    ("read CPU", "s"),
                    ("all", "s"),
                    ("all CPU", "s"),
                    ("memory", "MB"),
                ):
                    result.add(f"{way} {figure}", unit, found[figure])
                result.add(f"{way} components", "", len(found["lengths"]))
                if way == "wr":
                    wanted = Counter(planned.lengths)
                    missed += sum((wanted - Counter(found["lengths"])).values()) + (not found["proven"])
    result.bar("planted circles that were missed", missed, at_most=0)
    for way in WAYS:
        result.bar(f"{way}: seconds after start-up", max(result[f"{way} all"].values), at_most=BAR_S)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
