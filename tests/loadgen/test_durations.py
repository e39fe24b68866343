"""Durations as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.durations import plain_seconds, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("90s", 90), ("0.5", 0.5), ("0", 0), ("5m", 300), ("1h", 3600), ("1h30m", 5400)),
        *(("1h30m15s", 5415), ("2m30s", 150), ("1h10s", 3610), ("1.5h", 5400), ("0.1s", 0.1)),
    ],
)
def test_what_is_understood(text: str, seconds: float) -> None:
    """Hours, minutes and seconds in this order, or seconds alone."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "5 m",
        "-5",
        "+5",
        "1e3",
        "nan",
        "inf",
        "30m1h",
        "s",
        "h",
        "5min",
        "5M",
        "1h5",
        "1:30",
        ".5",
        "5.",
        "٣",
    ],
)
def test_what_is_not(text: str) -> None:
    """Refused with what it must be, and what it was; 1h5 may mean two things."""
    says = f"must be a time such as 90s, 5m or 1h30m, or a number of seconds, not {text!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        seconds_of(text)


@given(st.floats(0, 1e9).map(lambda seconds: round(seconds, 9)))
def test_what_is_written_is_read_again(seconds: float) -> None:
    """Without exponent, and without a point where none is needed."""
    assert seconds_of(plain_seconds(seconds)) == seconds
    assert plain_seconds(60.0) == "60"
