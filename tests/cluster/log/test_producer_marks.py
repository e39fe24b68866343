"""Marks of what was known of producers: what a log that is cut goes back to."""

from __future__ import annotations

from cluster.log.producer_marks import MARK_RECORDS, MARKS
from cluster.log.producers import ProducerStates
from tests.cluster.log.builders import make_header


def test_rewind_goes_to_the_newest_mark_not_above():
    """A mark is the state as it was; without one at or below the offset everything is forgotten."""
    producers = ProducerStates()
    for number in range(4):
        producers.mark(number * 10)
        producers.update(make_header(base_sequence=number), number * 10)
    assert producers.rewind(25) == 20
    entry = producers.get(7)
    assert entry is not None and entry.last_sequence == 1
    assert producers.rewind(20) == 20
    producers.update(make_header(base_sequence=2), 20)
    assert producers.rewind(20) == 20
    entry = producers.get(7)
    assert entry is not None and entry.last_sequence == 1  # the mark itself was not changed by that update
    for number in range(MARKS + 3):
        producers.mark(100 + number)
    assert producers.rewind(50) is None
    assert len(producers) == 0


def test_marks_within_a_segment_take_none_of_the_rolls_places():
    """They are made when enough was written, and only while there is a producer; the oldest of its kind goes."""
    producers = ProducerStates()
    producers.mark(0)
    producers.mark_within(MARK_RECORDS)
    assert repr(producers) == "ProducerStates(0 producers, 1 marks)"
    producers.update(make_header(), 0)
    for number in range(1, MARKS + 3):
        producers.mark_within(number * MARK_RECORDS - 1)
        producers.mark_within(number * MARK_RECORDS)
        producers.mark_within(number * MARK_RECORDS + 1)
    assert repr(producers) == f"ProducerStates(1 producers, {MARKS + 1} marks)"
    assert producers.rewind(5 * MARK_RECORDS + 1) == 5 * MARK_RECORDS
    assert producers.rewind(3 * MARK_RECORDS - 1) == 0
