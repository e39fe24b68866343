"""Every check once more, slow and obvious: plain loops over plain lists, no Spark, no numpy.

Segments and the files beside the log are parsed here. Histories are decoded by ``verifier.evidence.history``, whose
bugs this oracle cannot see.

``find_all`` reads a run directory by itself and returns what each check must find. The tests compare it with Spark's
answers on the same mutated runs. Each module of this package has the checks of one group of anomalies.
"""

from __future__ import annotations

from tests.verifier.oracle import (
    aborted_indexes,
    excuses,
    files,
    groups,
    headers,
    in_sync,
    internal,
    readers,
    serving,
    timing,
    transaction_logs,
    transactions,
    unsettled,
    values,
)
from tests.verifier.oracle.model import Anomaly, Evidence
from tests.verifier.oracle.reading import load, read, read_batch
from verifier.evidence.run_directory import RunDirectory

__all__ = ["Anomaly", "find_all", "read_batch"]

REPEATED = ("duplicate", "log-duplicate", "nonmonotonic-send", "log-reorder")

CHECKS = (*values.CHECKS, *headers.CHECKS, *files.CHECKS, *readers.CHECKS, *timing.CHECKS, *aborted_indexes.CHECKS)


def find_all(directory: RunDirectory) -> list[Anomaly]:
    """What all checks must find in this run."""
    run, rows = read(directory)
    found: list[Anomaly] = []
    for evidence in load(directory, run, rows):
        for check in CHECKS:
            each = [excused(evidence, anomaly) for anomaly in check(evidence)]
            found += excuses.within_attempts(evidence, each)
    found += [*serving.stalled(run, rows), *transactions.find_all(directory, run, rows)]
    found += in_sync.find_all(directory, run, rows)
    found += unsettled.find_all(directory, run)
    found += timing.wrong_ends(run, rows, transaction_logs.logs_of(directory))
    return [*found, *groups.find_all(directory, run, rows), *internal.find_all(directory, run)]


def excused(evidence: Evidence, found: Anomaly) -> Anomaly:
    """The same anomaly with the event that excuses it, if there is one.

    Stretches of ``log-gap`` have theirs, and so has what an unclean election moved.
    """
    excuse = None
    if found.check == "lost-write" and found.stream is not None and found.sequence is not None:
        excuse = excuses.of_lost(evidence, (found.stream, found.sequence))
    elif found.check == "inconsistent-offsets" and found.offset is not None:
        excuse = excuses.of_offset(evidence, found.offset)
    elif found.check in REPEATED and found.stream is not None and found.sequence is not None:
        excuse = excuses.of_repeated(evidence, (found.stream, found.sequence), found.check, found.cause)
    elif found.excuse is None:
        return found._replace(excuse=excuses.of_headers(evidence, found.check))
    return found if excuse is None else found._replace(excuse=excuse.kind, epoch=excuse.epoch)
