"""``python -m verifier.job RUN_DIR...``: verifications in a process of their own, so that ending it ends the JVM.

Exit status 0: every run has a verdict, whichever it is. 255: at least one has none; the last line on stderr says why.
Progress goes to stderr; stdout stays empty. ``--outcomes FILE`` gets one JSON object a line as soon as a run is done:
``run`` is its path, ``error`` null or why it has no verdict.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from verifier.evidence.run_directory import RunDirectory, append_json_line
from verifier.spark import SparkUnavailable
from verifier.verdict import Verdict
from verifier.verification import verify_all

logger = logging.getLogger("verifier.job")

FAILED = 255


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the run directories that the arguments name."""
    parser = argparse.ArgumentParser(prog="verifier.job", description="Judge runs from their evidence.")
    parser.add_argument("run_directory", nargs="+", help="a run directory, as gapless run leaves it")
    parser.add_argument("--spark-master", default="local[2]", help="where Spark runs (default: %(default)s)")
    parser.add_argument("--outcomes", type=Path, help="a file that is told of each run when it is done")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # an end on request goes through ``finally``: the JVM is stopped and its files are removed
    signal.signal(signal.SIGTERM, _end)
    failed = []

    def told(directory: RunDirectory, outcome: Verdict | Exception) -> None:
        error = None
        if isinstance(outcome, Verdict):
            logger.info("verdict: %s", outcome.verdict)
        else:
            expected = isinstance(outcome, (OSError, ValueError, SparkUnavailable))
            error = str(outcome) if expected else f"the verifier failed: {type(outcome).__name__}: {outcome}"
            logger.error("no verdict: %s", error, exc_info=None if expected else outcome)
            failed.append(error)
        if options.outcomes is not None:
            append_json_line(options.outcomes, {"run": str(directory.path), "error": error})

    directories = [RunDirectory(Path(each).resolve()) for each in options.run_directory]
    verify_all(directories, options.spark_master, lambda text: logger.info("%s", text), told)
    if failed and len(directories) > 1:
        logger.error("no verdict for %d of %d runs, the first: %s", len(failed), len(directories), failed[0])
    return FAILED if failed else 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(FAILED)


if __name__ == "__main__":
    raise SystemExit(main())
