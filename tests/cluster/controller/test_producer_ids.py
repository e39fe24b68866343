"""Producer-id blocks: the arithmetic of the controller and of a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.producer_ids import (
    BLOCK_SIZE,
    MAX_PRODUCER_ID,
    ProducerIdBlock,
    ProducerIdsExhausted,
    ProducerIdSupply,
    next_block,
)


def test_blocks_follow_each_other_from_zero():
    """None yet: 0..999; then block_end + 1."""
    assert (next_block(None).first_id, next_block(None).last_id) == (0, 999)
    assert (next_block(999).first_id, next_block(999).last_id) == (1000, 1999)


def test_the_last_block_is_the_one_that_still_fits():
    """Exhaustion is an error, not a wrap to negative ids."""
    assert next_block(MAX_PRODUCER_ID - BLOCK_SIZE).last_id == MAX_PRODUCER_ID
    with pytest.raises(ProducerIdsExhausted):
        next_block(MAX_PRODUCER_ID - BLOCK_SIZE + 1)


def test_the_next_block_is_wanted_when_nine_tenths_are_handed_out():
    """Prefetch at first + floor(0.9 * size), so that clients do not wait at the end of a block."""
    supply = ProducerIdSupply()
    assert supply.wants_block
    assert supply.take() is None
    supply.add(ProducerIdBlock(5000))
    assert not supply.wants_block
    taken = []
    while not supply.wants_block:
        taken.append(supply.take())
    assert taken == list(range(5000, 5900))
    supply.add(ProducerIdBlock(9000))
    assert [supply.take() for _ in range(101)][-2:] == [5999, 9000]


def test_a_second_block_in_advance_is_refused():
    """One request in flight: an unexpected block means that the bookkeeping is wrong."""
    supply = ProducerIdSupply()
    supply.add(ProducerIdBlock(0))
    with pytest.raises(ValueError, match="fetched already"):
        supply.add(ProducerIdBlock(1000))


@given(st.lists(st.integers(0, 2), max_size=400))
def test_brokers_that_race_never_hand_out_an_id_twice(turns):
    """Three brokers take from one sequence of blocks, in any order; gaps are legal, repetition is not."""
    latest: int | None = None
    brokers = [ProducerIdSupply() for _ in range(3)]
    seen: set[int] = set()
    for turn in turns:
        broker = brokers[turn]
        if broker.wants_block:
            block = ProducerIdBlock(next_block(latest).first_id, size=10)
            latest = block.last_id
            broker.add(block)
        taken = broker.take()
        assert taken is not None
        assert taken not in seen
        seen.add(taken)
