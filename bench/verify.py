"""What a verdict costs, and how that grows: synthetic runs in which nothing went wrong, of several sizes.

    python -m bench verify [--records N,N...] [--batch N] [--value-bytes N] [--small]
    python -m bench verify --records N --write RUN_DIR
    python -m bench verify --run RUN_DIR...

Each run is made by ``tests.support.long_run``, judged by ``verifier.main`` in a process of its own, and removed. A
large one is better made once with ``--write`` and judged with ``--run``, which keep it. Told are the wall time, the CPU
of all processes, and the peak memory: of Java what is resident, of Python what is its own, without the files that it
has mapped. Bars (at 100 million records and two cores): 15 minutes, 6 GB of heap and what Java needs beside it, and
from the smallest size of 10 million or more to the largest one a record's CPU grows by less than 1.3x. ``--small``: the
run of 60 s, 90,000 records in batches of 8, 25 s. The first verifier of a machine also writes the archive of Java's
classes: judge a small run first. Exit status 0 if all hold, 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.measure import ROOT, Result, note
from tests.support.long_run import write_long_run
from verifier.evidence.run_directory import RunDirectory

PARTITIONS = 6
SMALL_RECORDS, SMALL_BATCH, SMALL_BAR_S = 90_000, 8, 25.0
LARGE_RECORDS, LARGE_BAR_S, JAVA_BAR_MB = 100_000_000, 900.0, 7_500.0
GROWTH_FROM, GROWTH_BAR = 10_000_000, 1.3
#: Between two looks at the memory of the processes: their peaks last longer.
SAMPLE_S = 0.2


class Cost(NamedTuple):
    """What one verification cost, and how many acknowledged records it judged; seconds and megabytes."""

    records: int
    wall_s: float
    cpu_s: float
    python_mb: float
    java_mb: float


def judge(directory: Path) -> Cost:
    """Have it judged. Raises ``RuntimeError`` unless the verdict is valid."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    with (directory / "verifier.log").open("wb") as log:
        job = subprocess.Popen([sys.executable, "-m", "verifier.main", str(directory)], cwd=ROOT, stderr=log)
    watched, python, java = psutil.Process(job.pid), 0, 0
    while job.poll() is None:
        sizes = {True: 0, False: 0}
        try:
            for each in [watched, *watched.children(recursive=True)]:
                # forks that have not yet become another program count what they share a second time: only the two kinds
                if each.name() in ("java", "python", "python3", Path(sys.executable).name):
                    size = each.memory_info()
                    # the pages of a file that is mapped are the machine's, which takes them back when it needs to
                    sizes[each.name() == "java"] += size.rss if each.name() == "java" else size.rss - size.shared
        except psutil.Error:
            continue
        python, java = max(python, sizes[False]), max(java, sizes[True])
        time.sleep(SAMPLE_S)
    wall_s = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = RunDirectory(directory).verdict_json
    verdict = {} if job.returncode else json.loads(path.read_text())
    if verdict.get("verdict") != "valid":
        raise RuntimeError(f"no valid verdict of {directory}; see verifier.log there")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(verdict["stats"]["acked"], wall_s, cpu_s, python / 1e6, java / 1e6)


def _write(directory: Path, records: int, arguments: argparse.Namespace) -> None:
    note(f"writing {records:,} records")
    batch: int = arguments.batch
    write_long_run(
        directory,
        partitions=PARTITIONS,
        batches=-(-records // (PARTITIONS * batch)),
        size=batch,
        value_bytes=arguments.value_bytes,
        segment_bytes=arguments.segment_bytes,
    )


def _measure(result: Result, records: int, arguments: argparse.Namespace) -> Cost:
    home = Path(tempfile.mkdtemp(prefix="gapless-verify-", dir=arguments.directory))
    try:
        _write(home / "run", records, arguments)
        return _judged(result, home / "run")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _judged(result: Result, directory: Path) -> Cost:
    note("judging")
    cost = judge(directory)
    name = f"{cost.records / 1e6:g} million"
    result.add(f"{name}: wall", "s", cost.wall_s)
    result.add(f"{name}: CPU", "s", cost.cpu_s)
    result.add(f"{name}: CPU a record", "us", cost.cpu_s / cost.records * 1e6)
    result.add(f"{name}: Python", "MB", cost.python_mb)
    result.add(f"{name}: Java", "MB", cost.java_mb)
    return cost


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench verify", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", default="2000000,10000000", help="sizes, e.g. 10000000,100000000")
    parser.add_argument("--batch", type=int, default=20, help="records a batch")
    parser.add_argument("--value-bytes", type=int, default=100, help="48 at least; 100 million take 11 GB at 100")
    parser.add_argument("--segment-bytes", type=int, default=16 << 20)
    parser.add_argument("--small", action="store_true", help="the run of 60 s alone")
    parser.add_argument("--directory", type=Path, help="where the runs are made (the system's temporary files)")
    parser.add_argument("--write", type=Path, metavar="RUN_DIR", help="make a run here, and judge nothing")
    parser.add_argument("--run", type=Path, nargs="+", metavar="RUN_DIR", help="judge these runs, and make none")
    arguments = parser.parse_args()
    if arguments.write and not arguments.records.isdecimal():
        parser.error("--write makes one run: give one number of --records")
    return arguments


def main() -> int:
    """Make, judge, print. Returns the exit status."""
    arguments = _options()
    if arguments.write:
        _write(arguments.write, int(arguments.records), arguments)
        note("written")
        return 0
    result = Result("verify", {key: str(value) for key, value in vars(arguments).items()})
    if arguments.small:
        arguments.batch = SMALL_BATCH
        small = _measure(result, SMALL_RECORDS, arguments)
        result.bar("verdict of a run of 60 s, seconds", small.wall_s, at_most=SMALL_BAR_S)
        return result.finish()
    if arguments.run:
        costs = [_judged(result, directory) for directory in arguments.run]
    else:
        costs = [_measure(result, int(size), arguments) for size in arguments.records.split(",")]
    costs.sort()
    largest = costs[-1]
    smallest = next((cost for cost in costs if cost.records >= GROWTH_FROM), largest)
    if smallest.records < largest.records:
        growth = (largest.cpu_s / largest.records) / (smallest.cpu_s / smallest.records)
        result.bar("growth of a record's CPU", growth, at_most=GROWTH_BAR)
    if largest.records >= LARGE_RECORDS:
        result.bar("verdict of the largest, seconds", largest.wall_s, at_most=LARGE_BAR_S)
        result.bar("memory of Java, MB", largest.java_mb, at_most=JAVA_BAR_MB)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
