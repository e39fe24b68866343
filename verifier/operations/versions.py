"""Derives the order of values in each key's log from the operations. Owns which operations prove something.

A send with an offset counts if it must have happened: its operation is ``ok``, or it is ``info`` and an ``ok``
operation read one of its values. (Transactions are all or nothing. Without transactions, the value itself must have
been read.) Polls count whatever the outcome of their operation, because a consumer must never receive a value that is
not safe. Offsets have gaps, such as transaction markers. So positions are indices: the offsets with a value, counted
from 0 in each key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.operations.columns import group_numbers, least_by, most_by, starts_of_groups
from verifier.operations.model import INFO, OK, BoolArray, IntArray
from verifier.operations.pairing import Operations

#: The most values that ``between`` returns.
MOST_BETWEEN = 8


@dataclass(frozen=True, slots=True)
class Versions:
    """The derived order. A slot is a (key, offset) with at least one value; slots are sorted by key and offset.

    - One row per slot: ``slot_key``, ``slot_offset``, ``slot_index`` (counted from 0 in each key) and ``slot_value``.
      If operations claim several values for a slot, ``slot_value`` is the one that the history mentions first.
    - One row per claim: ``claim_slot`` and ``claim_value`` list every value of every slot once.
    - One row per value: ``place`` is the highest index of a slot whose ``slot_value`` it is. ``first_index`` and
      ``last_index`` are the lowest and highest index of a slot with any claim for it. All three are -1 without a slot.
      ``ok_read``: an ok operation read the value.
    - One row per send: ``committed`` says whether it must have happened.
    - One row per key: ``key_start`` is its first slot.
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
        """The values of a key at the indices between ``first`` and ``last``, at most ``MOST_BETWEEN``."""
        start = int(self.key_start[key])
        return [int(each) for each in self.slot_value[start + first + 1 : start + min(last, first + 1 + MOST_BETWEEN)]]

    def __repr__(self) -> str:
        return f"Versions({len(self.slot_key):,} slots)"


def versions(operations: Operations, *, transactions: bool) -> Versions:
    """Derives the order of every key."""
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
    # within an operation, sends count as mentioned before reads; each kind is in order already
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
    """For each send, whether it must have happened."""
    kind = operations.type[operations.sent_by]
    was_read: BoolArray = ok_read[operations.sent]
    if transactions:
        whole = np.zeros(len(operations), dtype=np.bool_)
        whole[operations.sent_by[was_read]] = True
        was_read = whole[operations.sent_by]
    mask: BoolArray = (kind == OK) | ((kind == INFO) & was_read)
    return mask
