"""``python -m verifier.job RUN_DIR``: one verification in a process of its own, so that ending it ends the JVM.

Exit status 0: a verdict was written, whichever it is. 255: none could be made; the last line on stderr says why.
Progress goes to stderr; stdout stays empty.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from verifier.evidence.run_directory import RunDirectory
from verifier.spark import SparkUnavailable
from verifier.verification import verify

logger = logging.getLogger("verifier.job")

FAILED = 255


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the run directory that the arguments name."""
    parser = argparse.ArgumentParser(prog="verifier.job", description="Judge one run from its evidence.")
    parser.add_argument("run_directory", help="a run directory, as gapless run leaves it")
    parser.add_argument("--spark-master", default="local[2]", help="where Spark runs (default: %(default)s)")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # an end on request goes through ``finally``: the JVM is stopped and its files are removed
    signal.signal(signal.SIGTERM, _end)
    directory = RunDirectory(Path(options.run_directory).resolve())
    try:
        verdict = verify(directory, options.spark_master, lambda text: logger.info("%s", text))
    except (OSError, ValueError, SparkUnavailable) as error:
        logger.error("no verdict: %s", error)
        return FAILED
    except Exception:
        logger.exception("no verdict: the verifier failed")
        return FAILED
    logger.info("verdict: %s", verdict.verdict)
    return 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(FAILED)


if __name__ == "__main__":
    raise SystemExit(main())
