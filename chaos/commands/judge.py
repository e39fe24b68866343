"""Has stored runs judged, by the verifier in a process of its own, and says the outcome.

Owns how the verifier is started and ended (Spark's JVM must never outlive a run), and the lines that every run ends
with. The verdict itself is the verifier's.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.run_directory import RunDirectory, read_json, read_json_lines
from verifier.evidence.run_model import RunModel
from verifier.report import write_reports
from verifier.verdict import result_lines, undecidable

#: For a small run, and a second more for each so many bytes of evidence.
VERIFY_TIMEOUT_S = 900.0
VERIFIED_BYTES_PER_S = 2_000_000
END_TIMEOUT_S = 5.0


class VerifierFailed(Exception):
    """The verifier ended without a verdict; the message names its log."""


def judge(directory: RunDirectory, spark_master: str, *, as_json: bool) -> str:
    """Verify a run directory, print its outcome, and return ``valid``, ``invalid`` or ``unknown``."""
    with Supervisor(str(directory.path)) as supervisor:
        run_verifier(supervisor, directory, spark_master)
    return say(directory, as_json=as_json)


def judge_all(directories: Sequence[RunDirectory], spark_master: str) -> dict[RunDirectory, str | None]:
    """Verify several run directories in one Spark session; for each, None or why it has no verdict.

    If the verifier dies over a run, it is started again for those behind it.
    """
    told: dict[RunDirectory, str | None] = {}
    while len(told) < len(directories):
        left = [each for each in directories if each not in told]
        with Supervisor(str(left[0].path)) as supervisor:
            outcomes = Path(supervisor.temporary_directory()) / "outcomes.jsonl"
            code, log_path = _run_job(supervisor, left, spark_master, ["--outcomes", str(outcomes)])
            found = {str(line["run"]): line["error"] for line in read_json_lines(outcomes)}
        told |= {each: found[str(each.path)] for each in left if str(each.path) in found}
        if left[-1] not in told:
            died = next(each for each in left if each not in told)
            told[died] = f"the verifier ended with {code} and without a verdict; see {log_path}"
    return told


def run_verifier(
    supervisor: Supervisor, directory: RunDirectory, spark_master: str, on_start: Callable[[Child], None] | None = None
) -> None:
    """Run the verifier's job and wait for its files. Raises VerifierFailed.

    Ctrl-C and SIGTERM end the job and are raised again as KeyboardInterrupt.
    """
    code, log_path = _run_job(supervisor, [directory], spark_master, on_start=on_start)
    if code != 0:
        raise VerifierFailed(f"the verifier ended with {code} and without a verdict; see {log_path}")


def _run_job(
    supervisor: Supervisor,
    directories: Sequence[RunDirectory],
    spark_master: str,
    options: Sequence[str] = (),
    on_start: Callable[[Child], None] | None = None,
) -> tuple[int | None, str]:
    """The job's exit status and its log, which lies in the first of the directories."""
    log_path = str(directories[0].path / "verifier.log")
    paths = [str(directory.path) for directory in directories]
    argv = [sys.executable, "-m", "verifier.job", *paths, "--spark-master", spark_master, *options]
    child = supervisor.start_program("verifier", argv, None, None, log_path)
    if on_start is not None:
        on_start(child)
    previous = {each: signal.signal(each, _interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    size_bytes = sum(directory.size_bytes() for directory in directories)
    try:
        code = child.wait(len(directories) * VERIFY_TIMEOUT_S + size_bytes / VERIFIED_BYTES_PER_S)
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
        if child.is_running():
            # It ends its JVM on request; the supervisor ends what is left of both.
            child.terminate()
            child.wait(END_TIMEOUT_S)
    return code, log_path


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def write_unjudged(directory: RunDirectory, reason: str) -> None:
    """Leave ``verdict.json`` and the reports of a run that was not judged: unknown, for that reason."""
    run = RunModel.from_json(directory.read_run())
    write_reports(directory, run, [], undecidable(reason))


def say(directory: RunDirectory, *, as_json: bool, more: Mapping[str, Any] | None = None) -> str:
    """Print the RESULT lines (with ``as_json``: to stderr, and the verdict's object to stdout). Returns the verdict.

    ``more`` is added to the object.
    """
    verdict = read_json(directory.verdict_json)
    run = directory.read_run()
    lines = result_lines(verdict, seed=run["seed"], report=str(directory.report_html), repro=run["repro"])
    whole = {**verdict, "run_dir": str(directory.path), "seed": run["seed"], "repro": run["repro"], **(more or {})}
    return say_lines(lines, whole, as_json=as_json)


def say_lines(lines: Sequence[str], verdict: Mapping[str, Any], *, as_json: bool) -> str:
    """Print these lines and the verdict's reasons, and its object if it is asked for. Returns the verdict."""
    print("\n".join(lines), file=sys.stderr if as_json else sys.stdout, flush=True)
    for reason in verdict["reasons"]:
        print(f"  {reason}", file=sys.stderr)
    if as_json:
        print(json.dumps(verdict), flush=True)
    return str(verdict["verdict"])
