"""The defects of replication, leadership and elections, as entries of the catalogue."""

from __future__ import annotations

from cluster.defects import (
    advance_alone,
    confirm_on_stepping_down,
    cut_to_the_watermark,
    damage_copies,
    elect_anybody,
    guess_unknown_epochs,
    join_at_the_watermark,
    lead_alone,
    one_is_enough,
    read_to_the_end,
    reuse_epochs,
)
from cluster.defects.model import Defect

OF_REPLICATION = (
    Defect(elect_anybody.NAME, "acknowledge with one copy, and elect any live replica", elect_anybody.plant, False),
    Defect(one_is_enough.NAME, "ignore min.insync.replicas, also for acks=all", one_is_enough.plant, False),
    Defect(
        cut_to_the_watermark.NAME, "a follower truncates to its own high watermark", cut_to_the_watermark.plant, False
    ),
    Defect(
        guess_unknown_epochs.NAME,
        "a leader reports its log end for an epoch that it does not know",
        guess_unknown_epochs.plant,
        False,
    ),
    Defect(
        join_at_the_watermark.NAME,
        "a follower joins the ISR below the start of the leader's epoch",
        join_at_the_watermark.plant,
        False,
    ),
    Defect(
        advance_alone.NAME,
        "move the high watermark with fewer replicas in sync than min.insync.replicas",
        advance_alone.plant,
        False,
    ),
    Defect(lead_alone.NAME, "a leader shrinks the ISR without the controller's consent", lead_alone.plant, False),
    Defect(
        confirm_on_stepping_down.NAME,
        "a deposed leader acknowledges what its followers lack",
        confirm_on_stepping_down.plant,
        False,
    ),
    Defect(read_to_the_end.NAME, "return records above the high watermark to consumers", read_to_the_end.plant, True),
    Defect(reuse_epochs.NAME, "a new leader stores under its predecessor's epoch", reuse_epochs.plant, False),
    Defect(damage_copies.NAME, "a follower stores a damaged batch, with a valid checksum", damage_copies.plant, True),
)
