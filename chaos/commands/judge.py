"""Has stored runs judged, by the verifier in a process of its own, and says the outcome.

Owns how the verifier is started and ended (Spark's JVM must never outlive a run), and the lines that every run ends
with. The verdict itself is the verifier's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from chaos.commands.shown import examples, planted
from chaos.exits import BadRequest
from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.run_directory import RunDirectory, read_json, read_json_lines
from verifier.evidence.run_model import RunModel
from verifier.job import NO_VERDICT, REFUSED
from verifier.report import write_reports
from verifier.verdict import result_lines, undecidable

#: For a small run; and the bytes of evidence that add a second.
VERIFY_TIMEOUT_S = 900.0
VERIFIED_BYTES_PER_S = 2_000_000
END_TIMEOUT_S = 5.0
#: How often it is looked whether a run has a verdict meanwhile.
LOOK_S = 0.5


def judge(directory: RunDirectory, spark_master: str, *, as_json: bool) -> str:
    """Verify a run directory, print its outcome, and return ``valid``, ``invalid`` or ``unknown``."""
    with Supervisor(str(directory.path)) as supervisor:
        run_verifier(supervisor, directory, spark_master)
    return say(directory, as_json=as_json)


def judge_all(directories: Sequence[RunDirectory], spark_master: str) -> dict[RunDirectory, str | None]:
    """Verify several run directories in one Spark session; for each, None or why it has no verdict.

    If the verifier fails over a run, that is left unknown, for that reason; if it dies, it is started again for those
    behind it. A run that another verifier judges, or whose ``run.json`` cannot be read, has no verdict. A line on
    stderr says how far it is.
    """
    told: dict[RunDirectory, str | None] = {}
    progress = _Progress(len(directories))
    while len(told) < len(directories):
        left = [each for each in directories if each not in told]
        with Supervisor(str(left[0].path)) as supervisor:
            outcomes = Path(supervisor.temporary_directory()) / "outcomes.jsonl"
            progress.begin(outcomes, len(told))
            ended = _run_job(supervisor, left, spark_master, ["--outcomes", str(outcomes)], look=progress.look)
            found = {str(line["run"]): line for line in read_json_lines(outcomes)}
        for each in left:
            line = found.get(str(each.path))
            if line is None:
                # it died over this one, and the next verifier begins behind it
                told[each] = _left_unknown(each, _why(ended, ""))
                break
            error = line["error"]
            if error is not None and not line["refused"]:
                error = _left_unknown(each, f"the verifier has no verdict: {error}; see {ended.log_path}")
            told[each] = error
    return told


class _Progress:
    """A line for each of several runs that has been judged, as soon as the verifier says so."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._before = self._here = 0
        self._outcomes = Path()

    def begin(self, outcomes: Path, done: int) -> None:
        """A job writes its outcomes here; ``done`` runs were judged before it."""
        self._before, self._here, self._outcomes = done, 0, outcomes

    def look(self) -> None:
        """Print what is new."""
        for line in list(read_json_lines(self._outcomes))[self._here :]:
            self._here += 1
            outcome = line["error"] or read_json(RunDirectory(Path(line["run"])).verdict_json)["verdict"]
            print(f"judged {self._before + self._here} of {self._runs}: {line['run']}: {outcome}", file=sys.stderr)


def _left_unknown(directory: RunDirectory, reason: str) -> str | None:
    """None, or the reason if not even that can be written."""
    try:
        write_unjudged(directory, reason)
    except (OSError, ValueError):
        return reason
    return None


def run_verifier(
    supervisor: Supervisor, directory: RunDirectory, spark_master: str, on_start: Callable[[Child], None] | None = None
) -> None:
    """Run the verifier's job and wait for its files; if it dies, the run is left unknown, for that reason.

    Raises BadRequest if another verifier judges this directory. Ctrl-C and SIGTERM end the job and are raised again as
    KeyboardInterrupt.
    """
    ended = _run_job(supervisor, [directory], spark_master, on_start=on_start)
    if ended.code == REFUSED:
        raise BadRequest(ended.said)
    if ended.code != 0:
        write_unjudged(directory, _why(ended, ended.said))


class _Ended(NamedTuple):
    """How a job ended: None if it was ended after ``timeout_s``. ``said`` is why there is no verdict, "" if unsaid."""

    code: int | None
    timeout_s: float
    said: str
    log_path: str


def _run_job(
    supervisor: Supervisor,
    directories: Sequence[RunDirectory],
    spark_master: str,
    options: Sequence[str] = (),
    on_start: Callable[[Child], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> _Ended:
    """Run the job, whose log is in the first of the directories, and wait for it; ``look`` is called meanwhile."""
    log_path = str(directories[0].path / "verifier.log")
    log_start = os.path.getsize(log_path) if os.path.exists(log_path) else 0
    command = _command(directories, spark_master, options)
    child = supervisor.start_program("verifier", command, None, None, log_path)
    if on_start is not None:
        on_start(child)
    previous = {each: signal.signal(each, _interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    size_bytes = sum(directory.size_bytes() for directory in directories)
    try:
        timeout_s = len(directories) * VERIFY_TIMEOUT_S + size_bytes / VERIFIED_BYTES_PER_S
        code = _wait(child, timeout_s, look)
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
        if child.is_running():
            # It ends its JVM on request; the supervisor ends what is left of both.
            child.terminate()
            child.wait(END_TIMEOUT_S)
    return _Ended(code, timeout_s, _last_words(log_path, log_start), log_path)


def _wait(child: Child, timeout_s: float, look: Callable[[], None]) -> int | None:
    """The exit status, or None if it still runs after ``timeout_s``."""
    code, left_s = None, timeout_s
    while code is None and left_s > 0:
        code = child.wait(min(LOOK_S, left_s))
        left_s -= LOOK_S
        look()
    return code


def _command(directories: Sequence[RunDirectory], spark_master: str, options: Sequence[str]) -> list[str]:
    paths = [str(directory.path) for directory in directories]
    return [sys.executable, "-m", "verifier.job", *paths, "--spark-master", spark_master, *options]


def _why(ended: _Ended, said: str) -> str:
    """One line: how the verifier ended without a verdict."""
    if ended.code is None:
        how = f"was ended after {ended.timeout_s:.0f} s without a verdict"
    elif ended.code < 0:
        how = f"was killed by signal {-ended.code} ({signal.Signals(-ended.code).name})"
    else:
        how = f"ended with status {ended.code}"
    return f"the verifier {how}{': ' * bool(said)}{said}; see {ended.log_path}"


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


def say(directory: RunDirectory, *, as_json: bool, more: Mapping[str, Any] | None = None) -> str:
    """Print the RESULT lines (with ``as_json``: to stderr, and the verdict's object to stdout). Returns the verdict.

    ``more`` is added to the object.
    """
    verdict = read_json(directory.verdict_json)
    run = directory.read_run()
    lines = result_lines(verdict, seed=run["seed"], report=str(directory.report_html), repro=run["repro"])
    whole = {**verdict, "run_dir": str(directory.path), "seed": run["seed"], "repro": run["repro"], **(more or {})}
    return say_lines(lines, whole, as_json=as_json, shown=[*examples(verdict["checks"]), *planted(directory)])


def say_lines(lines: Sequence[str], verdict: Mapping[str, Any], *, as_json: bool, shown: Sequence[str] = ()) -> str:
    """Print these lines, the verdict's reasons and what is shown for them, and its object if it is asked for.

    Returns the verdict.
    """
    print("\n".join(lines), file=sys.stderr if as_json else sys.stdout, flush=True)
    for line in (*verdict["reasons"], *shown):
        print(f"  {line}", file=sys.stderr)
    if as_json:
        print(json.dumps(verdict), flush=True)
    return str(verdict["verdict"])
