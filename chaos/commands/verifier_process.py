"""Has stored runs judged by a verifier in a child process.

Owns how the verifier is started and ended: Spark's JVM must never outlive a run. Does not own the verdict (the
verifier) or how it is printed (``verdict_lines``).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from chaos.commands.long_wait import LongWait
from chaos.commands.received import check_judged
from chaos.commands.verdict_lines import say
from chaos.exits import BadRequest
from cluster.process.invocation import command
from cluster.process.one_line import printable
from cluster.process.supervisor import Child, Supervisor
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import RunDirectory, read_json, read_json_lines
from verifier.evidence.run_model import RunModel
from verifier.main import NO_VERDICT, REFUSED
from verifier.replacing import recorded, replacing
from verifier.report import write_reports
from verifier.verdict import undecidable

#: The time limit for a small run, and the bytes of evidence that add a second to it.
VERIFY_TIMEOUT_S = 900.0
VERIFIED_BYTES_PER_S = 2_000_000
END_TIMEOUT_S = 5.0
#: How much of the end of a verifier's log is searched for its last error.
LAST_BYTES = 1 << 20
#: The time between two checks for a verdict.
LOOK_S = 0.5


#: Called for each run as soon as it is done, with the reason why it has no verdict, or None.
Said = Callable[[RunDirectory, str | None], None]


def judge(directory: RunDirectory, spark_master: str, *, as_json: bool, quiet: bool = False) -> str:
    """Verify a run directory, print its outcome, and return ``valid``, ``invalid`` or ``unknown``.

    Prints a line on stderr now and then to show that it works, unless ``quiet``. Raises BadRequest if there is
    something else at the path of a result. Ctrl-C and SIGTERM raise KeyboardInterrupt, after the state was printed on
    stderr.
    """
    check_judged(directory.path)
    before = _stamp(directory)
    waiting = judging(directory, quiet=quiet)
    try:
        with Supervisor(str(directory.path)) as supervisor:
            run_verifier(supervisor, directory, spark_master, look=waiting.look)
    except KeyboardInterrupt:
        _say_interrupted(directory, before)
        raise
    return say(directory, as_json=as_json)


def judging(directory: RunDirectory, *, quiet: bool = False, say: Callable[[str], None] | None = None) -> LongWait:
    """The line that says, while a run is judged, that its verifier is working."""
    return LongWait(f"judging {directory.path}", str(directory.path / "verifier.log"), quiet=quiet, say=say)


def judge_all(
    directories: Sequence[RunDirectory],
    spark_master: str,
    said: Said = lambda _run, _failure: None,
    *,
    quiet: bool = False,
) -> dict[RunDirectory, str | None]:
    """Verify several run directories in one Spark session; for each, None or why it has no verdict.

    If the verifier fails over a run, that is left unknown, for that reason; if it dies, it is started again for those
    after it. A run that another verifier judges, or whose ``run.json`` cannot be read, has no verdict. A line on
    stderr says how far it is, unless ``quiet``. Raises BadRequest, before any is judged, if something stands where a
    result of one belongs. Ctrl-C and SIGTERM raise KeyboardInterrupt, after what is left was said on stderr.
    """
    for each in directories:
        check_judged(each.path)
    before = {each: _stamp(each) for each in directories}
    progress = _VerifierProgress(directories, said, quiet=quiet)
    try:
        while left := progress.left():
            with Supervisor(str(left[0].path)) as supervisor:
                outcomes = Path(supervisor.temporary_directory()) / "outcomes.jsonl"
                progress.begin(outcomes, str(left[0].path / "verifier.log"))
                try:
                    ended = _run_job(supervisor, left, spark_master, ["--outcomes", str(outcomes)], look=progress.look)
                finally:
                    progress.look()
            if behind := progress.left():
                # the verifier died while it judged this run; the next one starts with the run after it
                progress.tell(behind[0], _left_unknown(behind[0], _why(ended, "")))
    except KeyboardInterrupt:
        if behind := progress.left():
            _say_interrupted(behind[0], before[behind[0]])
        print(f"interrupted: {len(progress.told)} of {len(directories)} runs were judged", file=sys.stderr)
        raise
    return progress.told


class _VerifierProgress:
    """Reports the outcome of each of several runs as soon as the verifier has written it, with a line on stderr."""

    def __init__(self, runs: Sequence[RunDirectory], said: Said, *, quiet: bool = False) -> None:
        self.told: dict[RunDirectory, str | None] = {}
        self._runs, self._said, self._quiet = runs, said, quiet
        self._looked_at, self._outcomes, self._log_path = 0, Path(), ""
        self._waiting = judging(runs[0], quiet=quiet)

    def left(self) -> list[RunDirectory]:
        """The runs without a reported outcome."""
        return [each for each in self._runs if each not in self.told]

    def begin(self, outcomes: Path, log_path: str) -> None:
        """Begin a job that writes its outcomes and its log to these files."""
        self._looked_at, self._outcomes, self._log_path = 0, outcomes, log_path
        self._waiting = LongWait(f"judging {how_many(len(self.left()), 'run')}", log_path, quiet=self._quiet)

    def look(self) -> None:
        """Report new outcomes."""
        for line in list(read_json_lines(self._outcomes))[self._looked_at :]:
            self._looked_at += 1
            run, error = RunDirectory(Path(line["run"])), line["error"]
            if error is not None and not line["refused"]:
                error = _left_unknown(run, f"the verifier has no verdict: {error}; see {self._log_path}")
            self.tell(run, error)
        self._waiting.look()

    def tell(self, run: RunDirectory, error: str | None) -> None:
        """Report that a run is done. ``error`` is why it has no verdict, None if it has one."""
        self.told[run] = error
        outcome = error or read_json(run.verdict_json)["verdict"]
        line = f"judged {len(self.told)} of {len(self._runs)}: {run.path}: {outcome}"
        if not self._quiet:
            print(printable(line), file=sys.stderr)
        self._waiting.spoken()
        self._said(run, error)


def _stamp(directory: RunDirectory) -> tuple[int, int] | None:
    """A value that differs if ``verdict.json`` was rewritten; None without a ``verdict.json``."""
    try:
        status = directory.verdict_json.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _say_interrupted(directory: RunDirectory, before: tuple[int, int] | None) -> None:
    """Print the state of a run whose verifier was interrupted. If it has no verdict, write that it is unknown."""
    if recorded(directory) is None:
        again = command(["verify", str(directory.path)])
        failure = _left_unknown(directory, f"interrupted before the verdict; judge it with: {again}")
        left = "it is unknown now" if failure is None else "it has no verdict"
        told = f"interrupted before the verdict: {left}"
    elif _stamp(directory) == before:
        told = f"interrupted, and not judged again: what is left is the previous verdict, {recorded(directory)}"
    else:
        told = f"interrupted, but it had been judged: {recorded(directory)}"
    print(printable(f"gapless: {directory.path}: {told}"), file=sys.stderr, flush=True)


def _left_unknown(directory: RunDirectory, reason: str) -> str | None:
    """Write that a run is unknown, for this reason. Returns None, or the reason if that cannot be written."""
    try:
        write_unjudged(directory, reason)
    except (OSError, ValueError):
        return reason
    return None


def run_verifier(
    supervisor: Supervisor,
    directory: RunDirectory,
    spark_master: str,
    on_start: Callable[[Child], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Run the verifier's job and wait for its files; if it dies, the run is left unknown, for that reason.

    Raises BadRequest if another verifier judges this directory. Ctrl-C and SIGTERM end the job and are raised again as
    KeyboardInterrupt.
    """
    ended = _run_job(supervisor, [directory], spark_master, on_start=on_start, look=look)
    if ended.code == REFUSED:
        raise BadRequest(ended.said)
    if ended.code != 0:
        write_unjudged(directory, _why(ended, ended.said))


class _VerifierEnded(NamedTuple):
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
) -> _VerifierEnded:
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
            # the verifier ends its JVM when asked to; the supervisor ends whatever is left of both
            child.terminate()
            child.wait(END_TIMEOUT_S)
    return _VerifierEnded(code, timeout_s, _last_words(log_path, log_start), log_path)


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
    return [sys.executable, "-m", "verifier.main", *paths, "--spark-master", spark_master, *options]


def _why(ended: _VerifierEnded, said: str) -> str:
    """One line: how the verifier ended without a verdict."""
    if ended.code is None:
        how = f"was ended after {ended.timeout_s:.0f} s without a verdict"
    elif ended.code < 0:
        how = f"was killed by signal {-ended.code} ({signal.Signals(-ended.code).name})"
    else:
        how = f"ended with status {ended.code}"
    return f"the verifier {how}{': ' * bool(said)}{said}; see {ended.log_path}"


def _last_words(log_path: str, start: int) -> str:
    """Why there is no verdict, from this verifier's log; "" if the log does not say."""
    with Path(log_path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - LAST_BYTES))
        lines = file.read(LAST_BYTES).decode(errors="replace").splitlines()
    return next((line.split(NO_VERDICT, 1)[1] for line in reversed(lines) if NO_VERDICT in line), "")


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def write_unjudged(directory: RunDirectory, reason: str) -> None:
    """Write ``verdict.json`` and the reports of a run that could not be judged: unknown, for this reason."""
    run = RunModel.from_json(directory.read_run())
    with replacing(directory) as results:
        write_reports(results, run, [], undecidable(reason))
