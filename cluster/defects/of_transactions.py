"""The defects of transactions, groups and what readers are told, as entries of the catalogue."""

from __future__ import annotations

from cluster.defects import (
    add_in_memory,
    commit_in_memory,
    do_not_resume,
    end_at_the_watermark,
    end_in_memory,
    end_one_later,
    end_whichever_is_open,
    expire_by_commit_time,
    fetch_unstable_offsets,
    name_no_aborted,
    read_undecided,
    refuse_above_the_watermark,
    take_fenced_producers,
    take_what_comes_late,
    time_out_unfenced,
)
from cluster.defects.model import Defect

OF_TRANSACTIONS = (
    Defect(
        end_whichever_is_open.NAME,
        "EndTxn ends the open transaction of its ID, no matter which producer sent it",
        end_whichever_is_open.plant,
        False,
    ),
    Defect(
        take_what_comes_late.NAME,
        "accept a batch that belongs to no open transaction",
        take_what_comes_late.plant,
        False,
    ),
    Defect(
        take_fenced_producers.NAME,
        "accept transactional writes of fenced producers",
        take_fenced_producers.plant,
        False,
    ),
    Defect(
        time_out_unfenced.NAME,
        "abort a transaction that times out without fencing its producer",
        time_out_unfenced.plant,
        False,
    ),
    Defect(
        read_undecided.NAME, "return undecided records to readers of committed records", read_undecided.plant, False
    ),
    Defect(name_no_aborted.NAME, "do not list aborted transactions in Fetch responses", name_no_aborted.plant, False),
    Defect(
        add_in_memory.NAME, "do not store the partitions of a transaction before it ends", add_in_memory.plant, False
    ),
    Defect(
        end_in_memory.NAME,
        "do not store that a transaction ends before its markers are written",
        end_in_memory.plant,
        False,
    ),
    Defect(
        do_not_resume.NAME,
        "a new coordinator does not complete transactions decided before it",
        do_not_resume.plant,
        False,
    ),
    Defect(
        fetch_unstable_offsets.NAME,
        "return committed offsets that an undecided transaction will change",
        fetch_unstable_offsets.plant,
        False,
    ),
    Defect(commit_in_memory.NAME, "acknowledge a commit of offsets without storing it", commit_in_memory.plant, True),
    Defect(
        expire_by_commit_time.NAME, "let offsets expire although members use them", expire_by_commit_time.plant, False
    ),
    Defect(
        refuse_above_the_watermark.NAME,
        "refuse positions above a new leader's watermark as out of range",
        refuse_above_the_watermark.plant,
        False,
    ),
    Defect(
        end_at_the_watermark.NAME,
        "ListOffsets returns the high watermark to readers of committed records",
        end_at_the_watermark.plant,
        False,
    ),
    Defect(end_one_later.NAME, "ListOffsets returns an end offset that is one too high", end_one_later.plant, False),
)
