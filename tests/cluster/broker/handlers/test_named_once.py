"""What is named several times counts once, and nothing that was named is lost."""

from __future__ import annotations

from cluster.broker.handlers.named_once import each_once, named, repeated
from cluster.broker.portions import all_of


def test_of_a_partition_the_last_word_counts_in_the_place_of_the_first() -> None:
    """A partition that is named twice counts once, as in Kafka's maps."""
    parts = [("a", 0, "first"), ("b", 0, "only"), ("a", 0, "last"), ("a", 1, "only")]
    assert each_once(parts) == [("a", 0, "last"), ("b", 0, "only"), ("a", 1, "only")]


def test_what_is_named_once_is_left_alone() -> None:
    """A list without repetition is returned as it is, not copied."""
    parts = [("a", 0, "x"), ("a", 1, "y")]
    assert each_once(parts) is parts


def test_a_topic_that_is_named_again_adds_its_partitions() -> None:
    """And changes those that it names again."""
    pairs = [("a", [(0, "x"), (1, "y")]), ("b", []), ("a", [(1, "z"), (2, "w")])]
    assert named(pairs) == {"a": {0: "x", 1: "z", 2: "w"}, "b": {}}


def test_repeated_partitions_are_told_apart_from_repeated_topics() -> None:
    """Within a topic and across entries of one name."""
    assert all_of(repeated([("a", [0, 1]), ("b", [0]), ("a", [1, 2])])) == {("a", 1)}
    assert all_of(repeated([("a", [0, 0, 0])])) == {("a", 0)}
    assert all_of(repeated([("a", [0]), ("a", [1])])) == set()
