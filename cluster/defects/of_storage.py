"""The defects of what is left on the disk by a crash, as entries of the catalogue."""

from __future__ import annotations

from cluster.defects import forget_epochs, keep_zeros, lose_unsynced, skip_recovery
from cluster.defects.model import Defect, same_rules

OF_STORAGE = (
    Defect(
        lose_unsynced.NAME,
        "the crash of a broker takes what it had not synced",
        same_rules,
        True,
        lose_unsynced.plant,
    ),
    Defect(
        forget_epochs.NAME, "after a crash a replica forgets the leader epochs of its log", forget_epochs.plant, True
    ),
    Defect(skip_recovery.NAME, "a batch that a crash left half written stays", skip_recovery.plant, True),
    Defect(
        keep_zeros.NAME, "after a crash a log continues behind the zeros of a preallocated file", keep_zeros.plant, True
    ),
)
