"""pipeline-exactly-once where the input itself has a value twice, as producers without idempotence may store it."""

from __future__ import annotations

import pytest

from verifier.checks.pipeline_exactly_once import pipeline_exactly_once
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.groups.pipeline import KeyedValue, Pipeline

FIRST, SECOND = (1, 0), (1, 1)


def causes(inputs: list[KeyedValue], outputs: list[KeyedValue], *, committed: int = 9) -> list[tuple[str | None, int]]:
    """Cause and offset of each anomaly. Each value is at the offset of its place in its list."""
    places: dict[KeyedValue, list[int]] = {}
    for offset, value in enumerate(outputs):
        places.setdefault(value, []).append(offset)
    judged = Pipeline(
        "orders", ("t", 0), (OUTPUT_TOPIC, 0), 0, committed, committed, dict(enumerate(inputs)), places, is_whole=True
    )
    return [(found.cause, found.offset or 0) for found in pipeline_exactly_once([judged])]


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([FIRST, FIRST, SECOND], []),
        ([FIRST, FIRST, SECOND, FIRST], [("twice", 3)]),
        ([FIRST, FIRST, SECOND, SECOND], [("twice", 3)]),
    ],
    ids=["as often as it was read", "once more", "another value"],
)
def test_a_value_may_be_in_the_output_as_often_as_in_the_input(
    outputs: list[KeyedValue], found: list[tuple[str, int]]
) -> None:
    """The group read both copies, and wrote both: the producer of the input stored a value twice, not the group."""
    assert causes([FIRST, FIRST, SECOND], outputs) == found


@pytest.mark.parametrize(
    ("outputs", "found"),
    [([FIRST, SECOND], []), ([FIRST, SECOND, FIRST], [("ahead", 2)])],
    ids=["the first copy", "both copies"],
)
def test_only_a_copy_beyond_the_commits_is_ahead(outputs: list[KeyedValue], found: list[tuple[str, int]]) -> None:
    """The first copy of a value is committed: its output is that of this one, although another copy follows."""
    assert causes([FIRST, SECOND, FIRST], outputs, committed=2) == found
