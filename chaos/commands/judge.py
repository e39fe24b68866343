"""Has a stored run judged, by the verifier in a process of its own, and says the outcome.

Owns how the verifier is started and ended (Spark's JVM must never outlive a run), and the lines that every run ends
with. The verdict itself is the verifier's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from chaos.exits import BadRequest
from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.run_model import RunModel
from verifier.job import NO_VERDICT, REFUSED
from verifier.report import write_reports
from verifier.verdict import result_lines, undecidable

#: For a small run, and a second more for each so many bytes of evidence.
VERIFY_TIMEOUT_S = 900.0
VERIFIED_BYTES_PER_S = 2_000_000
END_TIMEOUT_S = 5.0


def judge(directory: RunDirectory, spark_master: str, *, as_json: bool) -> str:
    """Verify a run directory, print its outcome, and return ``valid``, ``invalid`` or ``unknown``."""
    with Supervisor(str(directory.path)) as supervisor:
        run_verifier(supervisor, directory, spark_master)
    return say(directory, as_json=as_json)


def run_verifier(
    supervisor: Supervisor, directory: RunDirectory, spark_master: str, on_start: Callable[[Child], None] | None = None
) -> None:
    """Run the verifier's job and wait for its files; if it dies, the run is left unknown, for that reason.

    Raises BadRequest if another verifier judges this directory. Ctrl-C and SIGTERM end the job and are raised again as
    KeyboardInterrupt.
    """
    log_path = str(directory.path / "verifier.log")
    log_start = os.path.getsize(log_path) if os.path.exists(log_path) else 0
    child = supervisor.start_program("verifier", _command(directory, spark_master), None, None, log_path)
    if on_start is not None:
        on_start(child)
    previous = {each: signal.signal(each, _interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        timeout_s = VERIFY_TIMEOUT_S + directory.size_bytes() / VERIFIED_BYTES_PER_S
        code = child.wait(timeout_s)
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
        if child.is_running():
            # It ends its JVM on request; the supervisor ends what is left of both.
            child.terminate()
            child.wait(END_TIMEOUT_S)
    if code == REFUSED:
        raise BadRequest(_last_words(log_path, log_start))
    if code != 0:
        write_unjudged(directory, _why(code, timeout_s, _last_words(log_path, log_start), log_path))


def _command(directory: RunDirectory, spark_master: str) -> list[str]:
    return [sys.executable, "-m", "verifier.job", str(directory.path), "--spark-master", spark_master]


def _why(code: int | None, timeout_s: float, said: str, log_path: str) -> str:
    """One line: how the verifier ended without a verdict."""
    if code is None:
        how = f"was ended after {timeout_s:.0f} s without a verdict"
    elif code < 0:
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
    else:
        how = f"ended with status {code}"
    return f"the verifier {how}{': ' * bool(said)}{said}; see {log_path}"


def _last_words(log_path: str, start: int) -> str:
    """What this verifier's log says of why there is no verdict; "" if it could not say it."""
    lines = Path(log_path).read_bytes()[start:].decode(errors="replace").splitlines()
    return next((line.split(NO_VERDICT, 1)[1] for line in reversed(lines) if NO_VERDICT in line), "")


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def write_unjudged(directory: RunDirectory, reason: str) -> None:
    """Leave ``verdict.json`` and the reports of a run that was not judged: unknown, for that reason."""
    run = RunModel.from_json(directory.read_run())
    write_reports(directory, run, [], undecidable(reason))


def say(directory: RunDirectory, *, as_json: bool) -> str:
    """Print the RESULT lines (with ``as_json``: to stderr, and the verdict's object to stdout). Returns the verdict."""
    verdict = read_json(directory.verdict_json)
    run = directory.read_run()
    lines = result_lines(verdict, seed=run["seed"], report=str(directory.report_html), repro=run["repro"])
    print("\n".join(lines), file=sys.stderr if as_json else sys.stdout, flush=True)
    for reason in verdict["reasons"]:
        print(f"  {reason}", file=sys.stderr)
    if as_json:
        whole = {**verdict, "run_dir": str(directory.path), "seed": run["seed"], "repro": run["repro"]}
        print(json.dumps(whole))
    return str(verdict["verdict"])
