"""When a record was sent: the history says it, and so does the record's own value in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.judge import judge
from tests.support.stories import SECOND, Story, clean

#: When the values 3 to 5 of stream 1 are sent in a clean story; those before are sent 0.3 s earlier, those after later.
AT_NS = 1_290_000_000


def as_told() -> Story:
    return clean()


def later_than_told() -> Story:
    """A row that begins before its value was sent would be in no order with what was acknowledged between."""
    return with_times({(1, 3): AT_NS + 1})


def earlier_than_told() -> Story:
    return with_times({(1, 3): AT_NS - 1})


def with_times(times: dict[tuple[int, int], int]) -> Story:
    story = clean()
    story.sent_ns = times
    return story


def apart(second_ns: int) -> Story:
    """A batch that was acknowledged in two parts, of which the second began then."""
    story = clean()
    rows = story.rows["producer-1"]
    at = next(n for n, row in enumerate(rows) if (row.f, row.stream, row.first_sequence) == ("send", 1, 3))
    first = rows[at]._replace(last_sequence=3, last_offset=rows[at].first_offset)
    second = rows[at]._replace(first_sequence=4, first_offset=rows[at].first_offset + 1)
    rows[at : at + 1] = [first, second._replace(invoke_ns=second_ns, complete_ns=2 * SECOND)]
    return story


def in_parts() -> Story:
    """Only the first value of what is stored together is looked up: the others were sent between it and the next."""
    return apart(AT_NS + SECOND // 200)


def in_parts_before_the_first() -> Story:
    return apart(AT_NS - 1)


def in_parts_after_the_next() -> Story:
    return apart(AT_NS + SECOND // 3)


def forgotten() -> Story:
    """The value is not stored, and nothing says when it was sent but those before and after it."""
    story = later_than_told()
    story.everywhere(0, lambda batches: batches.pop(2))
    return story


def sentinel_later_than_told() -> Story:
    story = clean()
    sentinel = next(row for row in story.rows["sentinel"] if row.f == "sentinel")
    story.sent_ns = {(sentinel.stream, sentinel.first_sequence): sentinel.invoke_ns + 1}
    return story


#: What is said of each, by its first row; None if nothing is.
CASES: dict[Callable[[], Story], str | None] = {
    as_told: None,
    later_than_told: f"the first is that of s1/3, from {AT_NS} ns, sent about 1290000001 ns",
    earlier_than_told: f"the first is that of s1/3, from {AT_NS} ns, sent about 1289999999 ns",
    in_parts: None,
    in_parts_before_the_first: f"the first is that of s1/4, from {AT_NS - 1} ns",
    in_parts_after_the_next: f"the first is that of s1/4, from {AT_NS + SECOND // 3} ns",
    forgotten: None,
    sentinel_later_than_told: "the first is that of s2147483648/0",
}


@pytest.mark.full
def test_a_row_begins_when_its_first_value_was_sent(spark: Any, tmp_path: Path) -> None:
    """A time that was changed in a history alone makes the run unknown, and blinds what compares such times."""
    told = {each.__name__: each().write(tmp_path / each.__name__).path for each in CASES}
    judged = judge(spark, told, tmp_path / "scratch")
    for each, expected in CASES.items():
        found = judged[each.__name__]
        said = [reason for reason in found.reasons if "begin at another time than their values say" in reason]
        assert len(said) == (expected is not None), (each.__name__, found)
        if expected is not None:
            assert said[0].startswith("t-0: 1 rows of acknowledgements begin")
            assert expected in said[0]
    verdicts = {each.__name__: judged[each.__name__].verdict for each in CASES if each is not forgotten}
    assert verdicts == {
        each.__name__: "valid" if expected is None else "unknown"
        for each, expected in CASES.items()
        if each is not forgotten
    }
