"""The defects of what a crash leaves on the disk, as entries of the catalogue."""

from __future__ import annotations

from cluster.defects import forget_epochs, keep_zeros, lose_unsynced, skip_recovery
from cluster.defects.model import Defect, same_rules

OF_STORAGE = (
    Defect(
        lose_unsynced.NAME,
        "a broker that crashes loses what it had not synced",
        same_rules,
        True,
        lose_unsynced.plant,
    ),
    Defect(forget_epochs.NAME, "a replica forgets the leader epochs of its log in a crash", forget_epochs.plant, True),
    Defect(skip_recovery.NAME, "keep a batch that a crash left half written", skip_recovery.plant, True),
    Defect(keep_zeros.NAME, "continue a log after the zeros that a crash left in it", keep_zeros.plant, True),
)
