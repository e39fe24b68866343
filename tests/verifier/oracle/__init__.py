"""Every check once more, slow and obvious: plain loops over plain lists, no Spark, no numpy, no code of the reader.

``find_all`` reads a run directory by itself and returns what each check must find. The tests compare it with Spark's
answers on the same mutated runs. Each module of this package has the checks of one group of anomalies.
"""

from __future__ import annotations

from tests.verifier.oracle import files, headers, values
from tests.verifier.oracle.model import Anomaly
from tests.verifier.oracle.reading import load, read_batch
from verifier.evidence.run_directory import RunDirectory

__all__ = ["Anomaly", "find_all", "read_batch"]

CHECKS = (*values.CHECKS, *headers.CHECKS, *files.CHECKS)


def find_all(directory: RunDirectory) -> list[Anomaly]:
    """What all checks must find in this run."""
    return [anomaly for evidence in load(directory) for check in CHECKS for anomaly in check(evidence)]
