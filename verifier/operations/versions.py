"""The order of values in each key's log, as far as operations tell it. Owns what may be concluded from which operation.

A send with an offset counts if it must have happened: its operation is ``ok``, or ``info`` and something it sent was
read by an ``ok`` operation (transactions are all or nothing; without transactions each send stands for itself). Polls
count whatever became of their operation, for a consumer must never be handed what is not safe. Offsets leave gaps
(markers of transactions), so positions are indices: offsets that hold something, counted from 0 in each key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.operations.columns import group_numbers, least_by, most_by, starts_of_groups
from verifier.operations.model import INFO, OK, BoolArray, IntArray
from verifier.operations.pairing import Operations

#: Values between two others that are named at most.
MOST_BETWEEN = 8


@dataclass(frozen=True, slots=True)
class Versions:
    """What stands where. A slot is a (key, offset) that holds something, sorted by both.

    ``slot_value`` is the value of a slot: of several, the one that the history names first. ``claim_slot`` and
    ``claim_value`` list each value of each slot once. By value: ``place`` is the index of its last slot (-1: none, or
    others are preferred there), ``first_index`` and ``last_index`` those of all slots that anything puts it in (-1:
    none). ``ok_read``: an ok operation read it. ``committed``: by row of the sends, whether it must have happened.
    """

    slot_key: IntArray
    slot_offset: IntArray
    slot_value: IntArray
    slot_index: IntArray
    key_start: IntArray
    claim_slot: IntArray
    claim_value: IntArray
    place: IntArray
    first_index: IntArray
    last_index: IntArray
    ok_read: BoolArray
    committed: BoolArray

    def between(self, key: int, first: int, last: int) -> list[int]:
        """The values at the indices behind ``first`` and before ``last`` of a key, ``MOST_BETWEEN`` of them at most."""
        start = int(self.key_start[key])
        return [int(each) for each in self.slot_value[start + first + 1 : start + min(last, first + 1 + MOST_BETWEEN)]]

    def __repr__(self) -> str:
        return f"Versions({len(self.slot_key):,} slots)"


def versions(operations: Operations, *, transactions: bool) -> Versions:
    """Conclude the order of every key."""
    count = len(operations.values)
    ok_read = np.zeros(count, dtype=np.bool_)
    ok_read[operations.read[operations.type[operations.read_by] == OK]] = True
    committed = _committed(operations, ok_read, transactions)
    told = committed & (operations.sent_offset >= 0)
    seen = operations.read_offset >= 0
    value = np.concatenate([operations.sent[told], operations.read[seen]])
    offset = np.concatenate([operations.sent_offset[told], operations.read_offset[seen]])
    row = operations.row
    when = row[np.concatenate([operations.sent_by[told], operations.read_by[seen]])]
    # within an operation sends are named before reads; both are in their own order already
    order = np.lexsort((np.arange(len(when)), when, offset, operations.key_of[value]))
    value, offset, key = value[order], offset[order], operations.key_of[value[order]]
    starts = starts_of_groups([key, offset])
    slot = group_numbers(starts)
    slot_key, slot_offset, slot_value = key[starts], offset[starts], value[starts]
    key_begins = starts_of_groups([slot_key])
    key_start = np.zeros(len(operations.keys), dtype=np.int64)
    key_start[slot_key[key_begins]] = np.flatnonzero(key_begins)
    slot_index = np.arange(len(slot_key)) - key_start[slot_key]
    claim_order = np.lexsort((value, slot))
    once = starts_of_groups([slot[claim_order], value[claim_order]])
    claim_slot, claim_value = slot[claim_order][once], value[claim_order][once]
    return Versions(
        slot_key=slot_key,
        slot_offset=slot_offset,
        slot_value=slot_value,
        slot_index=slot_index,
        key_start=key_start,
        claim_slot=claim_slot,
        claim_value=claim_value,
        place=most_by(slot_value, slot_index, count),
        first_index=least_by(claim_value, slot_index[claim_slot], count, -1),
        last_index=most_by(claim_value, slot_index[claim_slot], count),
        ok_read=ok_read,
        committed=committed,
    )


def _committed(operations: Operations, ok_read: BoolArray, transactions: bool) -> BoolArray:
    """By row of the sends: whether it must have happened."""
    kind = operations.type[operations.sent_by]
    was_read: BoolArray = ok_read[operations.sent]
    if transactions:
        whole = np.zeros(len(operations), dtype=np.bool_)
        whole[operations.sent_by[was_read]] = True
        was_read = whole[operations.sent_by]
    mask: BoolArray = (kind == OK) | ((kind == INFO) & was_read)
    return mask
