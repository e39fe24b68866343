"""Sizes and keys: drawn by the record's number alone, within their bounds, in the distribution that was asked for."""

from __future__ import annotations

from collections import Counter

import pytest

from loadgen.choices import LEAST_BYTES, parse_keys, parse_sizes, unit
from loadgen.records import StreamRecords
from loadgen.spec import SpecError
from verifier.evidence.sequenced_value import HEADER_BYTES, decode


def test_draws_are_even_and_repeat() -> None:
    """Ten thousand numbers in ten bins, none far from a thousand; the same number gives the same draw."""
    draws = [unit(7, number) for number in range(10_000)]
    assert draws == [unit(7, number) for number in range(10_000)]
    assert all(900 < count < 1100 for count in Counter(int(draw * 10) for draw in draws).values())
    assert min(draws) >= 0.0 and max(draws) < 1.0


def test_sizes_keep_to_their_bounds() -> None:
    """A constant, an even and a lognormal distribution; the latter has its median, and both its ends."""
    assert parse_sizes(100).table == (100,)
    even = parse_sizes({"uniform": {"least": 48, "most": 57}})
    assert {even.of(1, number) for number in range(1000)} == set(range(48, 58))
    wide = parse_sizes({"lognormal": {"median": 300, "sigma": 1.0, "most": 20_000}})
    drawn = sorted(wide.of(1, number) for number in range(10_000))
    assert 48 <= drawn[0] < 60 and 5_000 < drawn[-1] <= 20_000
    assert drawn[5000] == pytest.approx(300, rel=0.1)
    assert wide.mean == pytest.approx(sum(drawn) / len(drawn), rel=0.05)


def test_no_value_is_shorter_than_its_header() -> None:
    """The two rooms agree on how long that is."""
    assert LEAST_BYTES == HEADER_BYTES


def test_keys_are_chosen_as_asked() -> None:
    """None, all alike, or the first far more often than the last."""
    assert parse_keys("none").of(1, 1) is None
    even = Counter(parse_keys({"uniform": {"keys": 4}}).of(1, number) for number in range(4000))
    assert set(even) == {b"key-0", b"key-1", b"key-2", b"key-3"} and all(900 < n < 1100 for n in even.values())
    zipf = parse_keys({"zipf": {"keys": 100}})
    counts = Counter(zipf.of(1, number) for number in range(10_000))
    assert counts[b"key-0"] == pytest.approx(10_000 / 5.187, rel=0.1)  # the hundredth harmonic number
    assert counts[b"key-0"] == pytest.approx(2 * counts[b"key-1"], rel=0.2)


def test_records_are_whole_values_of_their_drawn_sizes() -> None:
    """A record made twice is the same; the bytes of a range are the sum of its values'."""
    records = StreamRecords(
        9, 3, parse_sizes({"uniform": {"least": 48, "most": 9000}}), parse_keys({"uniform": {"keys": 10}})
    )
    values = [records.value(sequence, 5) for sequence in range(50)]
    assert values == [records.value(sequence, 5) for sequence in range(50)]
    assert [value.sequence for value in map(decode, values) if value] == list(range(50))
    assert records.size_bytes(10, 19) == sum(map(len, values[10:20]))
    assert len(set(map(len, values))) > 40
    assert records.key(4) == records.key(4) is not None


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (47, "at least 48"),
        (True, "uniform, lognormal"),
        ("big", "uniform, lognormal"),
        ({"uniform": {"least": 10, "most": 100}}, "at least 48"),
        ({"uniform": {"least": 200, "most": 100}}, "at least 48"),
        ({"uniform": {"least": 100.5, "most": 200}}, "at least 48"),
        ({"uniform": {"most": 100}}, "least, most"),
        ({"lognormal": {"median": 30, "sigma": 1, "most": 100}}, "median"),
        ({"lognormal": {"median": 60, "sigma": 0, "most": 100}}, "sigma"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(spec: object, says: str) -> None:
    """With what is wanted; no value is shorter than its header."""
    with pytest.raises(SpecError, match=says):
        parse_sizes(spec)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("some", "none, uniform, zipf"),
        ({"uniform": {"keys": 0}}, "from 1 to"),
        ({"uniform": {"keys": 1.5}}, "from 1 to"),
        ({"zipf": {"keys": 10, "exponent": 0}}, "exponent"),
        ({"zipf": 10}, "keys, exponent"),
    ],
)
def test_keys_that_make_no_sense_are_refused(spec: object, says: str) -> None:
    """Impossible keys are refused with what is expected."""
    with pytest.raises(SpecError, match=says):
        parse_keys(spec)  # type: ignore[arg-type]
