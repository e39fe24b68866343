"""Which checks may find something, and where: what each of them looks for, roughly, in one pass without Spark. Pure.

Of little evidence, planning a check costs Spark more than asking it, and in most runs nearly all checks find nothing.
Here each check has a *suspicion*: a condition on the very rows that it examines, simpler than the check and never
narrower. A place where a check finds an anomaly is always suspect; a suspect place may be innocent, which only the
check itself decides. A check that suspects no place is not asked; one without a suspicion always is.

A suspicion depends on nothing but rows: not on settings, and not on what a run says that it did. An unknown value
(null) is suspect wherever it is not the check's own condition that drops it. ``tests/verifier/test_suspects.py``
compares each suspicion with what the check's twin finds in all planted and mutated runs, partition by partition.
"""

from __future__ import annotations

from verifier.files.model import ABORTED_INDEX, CHECKPOINT, INDEX, SNAPSHOT, TAIL
from verifier.suspects.clients import of_history, of_jumps
from verifier.suspects.headers import of_batches, of_spans, of_unsettled
from verifier.suspects.rows import ExaminedRows, Places, examine, merged
from verifier.suspects.values import of_claims, of_ledger

__all__ = ["ExaminedRows", "Places", "examine", "suspects"]

#: The checks of files beside the logs.
BESIDE = (ABORTED_INDEX, CHECKPOINT, INDEX, SNAPSHOT, TAIL)


def suspects(rows: ExaminedRows) -> dict[str, Places]:
    """The places in which each check may find something, by the check's name."""
    return merged(
        of_batches(rows.batches, rows.replicas),
        of_unsettled(rows.unsettled),
        of_spans(rows.spans),
        of_ledger(rows.ledger),
        of_claims(rows.claims),
        of_history(rows.history),
        of_jumps(rows.jumps),
        # what is wrong beside the logs was found as the files were read
        {name: rows.files.places(rows.files.equal("check", name)) for name in BESIDE},
        {"inconsistent-offsets": rows.contradictable},
    )
