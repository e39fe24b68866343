"""Verification at size: a long run of many small segments is judged in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.long_run import write_long_run
from verifier.closing.closing import gather
from verifier.completeness import incomplete
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit
from verifier.run_checks import RunEvidence

ROOT = Path(__file__).resolve().parents[2]

#: A quarter of an hour at 2,000 records a second.
PARTITIONS, BATCHES, SIZE = 6, 20_000, 16
VALUES = PARTITIONS * BATCHES * SIZE
#: CPU seconds and resident bytes, all processes of the job together: a busy machine changes neither.
CPU_S, RSS_BYTES = 250.0, 5_000_000_000


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_small_one_is_clean(
    long_run: RunEvidence, long_run_directory: RunDirectory, audits: dict[str, Audit]
) -> None:
    """What the builder writes is a whole run in which nothing went wrong, down to the last value."""
    assert len(long_run.segments) > 2 * 3
    found = audits[long_run.name]
    assert (found.facts.acked, found.found, found.failures) == (120, (), {})
    assert {(each.acked, each.logged, each.seen): each.values for each in found.regions} == {(True, True, True): 120}
    assert incomplete(long_run.model, found.facts, gather(long_run_directory, long_run.model)) == []


@pytest.mark.full
@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_two_million_values_in_thousands_of_segments(tmp_path: Path) -> None:
    """The costs that grow with a run are bounded, and all of it is looked at."""
    directory = write_long_run(tmp_path / "run", partitions=PARTITIONS, batches=BATCHES, size=SIZE)
    argv = [sys.executable, "-m", "verifier.main", str(directory.path)]
    job = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True)
    watched, peak, cpu = psutil.Process(job.pid), 0, {}
    while job.poll() is None:
        try:
            family = [watched, *watched.children(recursive=True)]
            peak = max(peak, sum(each.memory_info().rss for each in family))
            cpu |= {each.pid: sum(each.cpu_times()[:2]) for each in family}
            job.wait(1.0)
        except (psutil.Error, subprocess.TimeoutExpired):
            continue
    assert job.stderr is not None
    with job.stderr as log:
        assert job.returncode == 0, log.read()
    verdict = json.loads(directory.verdict_json.read_text())
    assert verdict["verdict"] == "valid", verdict["reasons"]
    assert verdict["stats"]["acked"] == verdict["stats"]["read"] == verdict["stats"]["in_log"] == VALUES
    assert verdict["stats"]["segments"] > 1_000
    assert sum(cpu.values()) < CPU_S
    assert peak < RSS_BYTES
