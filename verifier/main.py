"""``python -m verifier.main RUN_DIR...``: verifications in a process of their own, so that ending it ends the JVM.

Exit status 0: every run has a verdict, whichever it is. 255: at least one has none; 254: another verifier is at work on
the only one, and nothing was touched. The last line on stderr says why, behind ``NO_VERDICT``; a line before it says
which previous verdict is left, if there is one. Progress goes to stderr; stdout stays empty. ``--outcomes FILE`` gets
one JSON object per line as soon as a run is done: ``run`` is its path, ``error`` null or why it has no verdict,
``refused`` whether that is because another verifier is at work on it.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from cluster.process.one_line import log_to
from verifier.evidence.run_directory import RunDirectory, append_json_line
from verifier.replacing import recorded
from verifier.spark.session import SparkLost, SparkUnavailable
from verifier.verdict import Verdict
from verifier.verify_runs import VerifierAtWork, verify_all

logger = logging.getLogger("verifier.main")

FAILED, REFUSED = 255, 254
NO_VERDICT = "no verdict: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the run directories that the arguments name."""
    parser = argparse.ArgumentParser(prog="verifier.main", description="Judge runs from their evidence.")
    parser.add_argument("run_directory", nargs="+", help="a run directory, as gapless run leaves it")
    parser.add_argument("--spark-master", default="local[2]", help="where Spark runs (default: %(default)s)")
    parser.add_argument("--outcomes", type=Path, help="a file that gets a line for each run when it is done")
    options = parser.parse_args(arguments)
    log_to(logging.StreamHandler(sys.stderr))
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # an end on request goes through ``finally``: the JVM is stopped and its files are removed
    signal.signal(signal.SIGTERM, _end)
    failed: list[str] = []
    refused: list[str] = []

    left = [RunDirectory(Path(each).resolve()) for each in options.run_directory]
    directories = list(left)

    def told(directory: RunDirectory, outcome: Verdict | Exception) -> None:
        error = None
        left.remove(directory)
        if isinstance(outcome, Verdict):
            logger.info("verdict: %s", outcome.verdict)
        else:
            error = _reason(outcome)
            (refused if isinstance(outcome, VerifierAtWork) else failed).append(error)
            _say_former(directory)
            logger.error("%s%s", NO_VERDICT, error)
        if options.outcomes is not None:
            line = {"run": str(directory.path), "error": error, "refused": isinstance(outcome, VerifierAtWork)}
            append_json_line(options.outcomes, line)

    try:
        verify_all(directories, options.spark_master, lambda text: logger.info("%s", text), told)
    except SystemExit:
        for each in left:
            _say_former(each)
        raise
    except Exception as error:  # the last resort of this process: its caller reads one line and the exit status
        failed.append(_reason(error))
        logger.error("%s%s", NO_VERDICT, failed[-1])
        return FAILED
    without = [*failed, *refused]
    if without and len(directories) > 1:
        logger.error("no verdict for %d of %d runs, the first: %s", len(without), len(directories), without[0])
    if without == refused and len(directories) == 1:
        return REFUSED if refused else 0
    return FAILED if without else 0


def _say_former(directory: RunDirectory) -> None:
    """A run without a new verdict may have a former one, which no one must take for the outcome of this process."""
    former = recorded(directory)
    if former is not None:
        logger.warning("what is left in %s is the previous verdict: %s", directory.path, former)


def _reason(error: Exception) -> str:
    """One line that says why there is no verdict; what no one expected is logged whole."""
    if isinstance(error, MemoryError):
        logger.error("the verifier failed", exc_info=error)
        return "the verifier ran out of memory"
    if isinstance(error, (VerifierAtWork, OSError, ValueError, SparkUnavailable, SparkLost)):
        return str(error)
    logger.error("the verifier failed", exc_info=error)
    reason = (str(error).strip().splitlines() or [repr(error)])[0]
    return f"the verifier failed: {type(error).__name__}: {reason[:300]}"


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(FAILED)


if __name__ == "__main__":
    raise SystemExit(main())
