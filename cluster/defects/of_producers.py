"""The defects of a producer's batches, as entries of the catalogue: those that need no fault, and of idempotence."""

from __future__ import annotations

from cluster.defects import (
    answer_offset_zero,
    begin_one_batch_late,
    change_a_byte,
    expire_early,
    forget_after_an_error,
    forget_on_failover,
    forget_sequences,
    lose_acked,
    refuse_batches,
    remember_one_batch,
    repeat_batches,
    shift_duplicates,
    swap_records,
    take_gaps,
)
from cluster.defects.model import Defect

OF_PRODUCERS = (
    Defect(lose_acked.NAME, "acknowledge a batch without storing it", lose_acked.plant, True),
    Defect(forget_sequences.NAME, "do not detect duplicates", forget_sequences.plant, False),
    Defect(refuse_batches.NAME, "refuse a batch with a retriable error", refuse_batches.plant, True),
    Defect(answer_offset_zero.NAME, "answer a stored batch with offset 0", answer_offset_zero.plant, True),
    Defect(swap_records.NAME, "store two records of a batch in each other's place", swap_records.plant, True),
    Defect(repeat_batches.NAME, "store a batch twice", repeat_batches.plant, True),
    Defect(change_a_byte.NAME, "store another byte of a value, with a valid checksum", change_a_byte.plant, True),
    Defect(
        begin_one_batch_late.NAME,
        "skip the first batch of a segment in a Fetch response",
        begin_one_batch_late.plant,
        False,
    ),
    Defect(
        remember_one_batch.NAME,
        "recognize only the last batch of a producer as a duplicate",
        remember_one_batch.plant,
        False,
    ),
    Defect(
        forget_after_an_error.NAME,
        "store a batch, answer with an error and forget it",
        forget_after_an_error.plant,
        True,
    ),
    Defect(
        shift_duplicates.NAME, "answer a duplicate with an offset that is one too high", shift_duplicates.plant, False
    ),
    Defect(expire_early.NAME, "forget the batches of a producer after half a second", expire_early.plant, False),
    Defect(take_gaps.NAME, "accept a batch although one before it is missing", take_gaps.plant, False),
    Defect(
        forget_on_failover.NAME,
        "a new leader does not recognize duplicates of what earlier leaders stored",
        forget_on_failover.plant,
        False,
    ),
)
