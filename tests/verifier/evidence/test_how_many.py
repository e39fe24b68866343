"""``verifier.evidence.how_many``: how many of something, in words."""

from __future__ import annotations

import pytest

from verifier.evidence.how_many import how_many


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((0, "run"), "0 runs"),
        ((1, "run"), "1 run"),
        ((2, "run"), "2 runs"),
        ((12_345, "run"), "12,345 runs"),
        ((1, "try", "tries"), "1 try"),
        ((3, "try", "tries"), "3 tries"),
    ],
)
def test_one_of_a_thing_is_singular(given: tuple[int, str] | tuple[int, str, str], text: str) -> None:
    """None and several are plural, and thousands have their comma."""
    assert how_many(*given) == text
