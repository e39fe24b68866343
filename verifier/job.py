"""``python -m verifier.job RUN_DIR``: one verification in a process of its own, so that ending it ends the JVM.

Exit status 0: a verdict was written, whichever it is. 255: none could be made; 254: another verifier is at work here,
and nothing was touched. The last line on stderr says why, behind ``NO_VERDICT``. Progress goes to stderr; stdout stays
empty.
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
from verifier.spark import SparkLost, SparkUnavailable
from verifier.verification import VerifierAtWork, verify

logger = logging.getLogger("verifier.job")

FAILED, REFUSED = 255, 254
NO_VERDICT = "no verdict: "


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
    except VerifierAtWork as error:
        logger.error("%s%s", NO_VERDICT, error)
        return REFUSED
    except (OSError, ValueError, SparkUnavailable, SparkLost) as error:
        logger.error("%s%s", NO_VERDICT, error)
        return FAILED
    except MemoryError:
        logger.exception("the verifier failed")
        logger.error("%sthe verifier ran out of memory", NO_VERDICT)
        return FAILED
    except Exception as error:
        logger.exception("the verifier failed")
        reason = (str(error).strip().splitlines() or [repr(error)])[0]
        logger.error("%sthe verifier failed: %s: %s", NO_VERDICT, type(error).__name__, reason[:300])
        return FAILED
    logger.info("verdict: %s", verdict.verdict)
    return 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(FAILED)


if __name__ == "__main__":
    raise SystemExit(main())
