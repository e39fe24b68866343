"""The EDN reader: what is written is read, the fast way reads the same, and what is wrong is named with its line."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.operations.edn import EdnError, EdnReader, Keyword, Symbol, fast_forms, plain_map, read_all
from verifier.operations.model import MAP, MAP_END

KEYWORDS = st.from_regex(r"[a-z][a-z0-9*+!?_.-]{0,8}(/[a-z][a-z0-9-]{0,5})?", fullmatch=True)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    KEYWORDS.map(Keyword),
    st.from_regex(r"[a-z][a-z0-9?!-]{0,8}", fullmatch=True)
    .filter(lambda name: name not in ("nil", "true", "false"))
    .map(Symbol),
    st.fractions().filter(lambda each: each.denominator > 1),
    st.decimals(allow_nan=False, allow_infinity=False),
)
KEYS = st.one_of(st.integers(), st.text(max_size=6), KEYWORDS.map(Keyword))
FORMS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)
#: Between two tokens, anything of this may stand.
SPACES = st.sampled_from([" ", ", ", "\n", "  ,\t", ' ; a comment } "\n', " #_ [discarded {:a 1}] ", " #_ #_ 1 2 "])


def written(value: Any, space: str = " ") -> str:
    """The form as EDN text."""
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case Keyword():
            return f":{value}"
        case Symbol():
            return str(value)
        case str():
            return json.dumps(value)
        case Decimal():
            return f"{value}M"
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case list():
            return f"[{space.join(written(each, space) for each in value)}]"
        case dict():
            pairs = space.join(f"{written(key, space)}{space}{written(each, space)}" for key, each in value.items())
            return f"{{{pairs}}}"
    return repr(value)


def same(one: Any, other: Any) -> bool:
    """Equal in value and in type, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(each, other[key]) for key, each in one.items())
    return bool(one == other)


@given(st.lists(FORMS, max_size=4), SPACES)
def test_what_is_written_is_read(forms: list[Any], space: str) -> None:
    """Any forms, with anything between them, come back as they were."""
    read = read_all(space.join(written(each, space) for each in forms))
    assert len(read) == len(forms)
    assert all(map(same, read, forms)), (read, forms)


@given(st.lists(FORMS, min_size=1, max_size=4), st.integers(1, 7))
def test_lines_may_break_anywhere(forms: list[Any], step: int) -> None:
    """A form comes out of the line that completes it, wherever lines end, within strings too."""
    text = "\n".join(written(each, "\n") for each in forms) + "\n"
    reader, read = EdnReader(), []
    lines = text.splitlines(keepends=True) if step > 1 else [text]
    for number, line in enumerate(lines, start=1):
        read += [form for _, form in reader.feed(line, number)]
    reader.end()
    assert all(map(same, read, forms))
    assert len(read) == len(forms)


SIMPLE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), KEYWORDS.map(Keyword)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYWORDS.map(Keyword), inner, max_size=3)),
    max_leaves=10,
)


def unmarked(value: Any) -> Any:
    """What the fast way gives, with maps as dicts."""
    if isinstance(value, list) and value[:1] == [MAP]:
        assert value[-1] == MAP_END
        return {str(key): unmarked(each) for key, each in zip(value[1:-1:2], value[2:-1:2], strict=True)}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


@given(
    st.lists(st.dictionaries(KEYWORDS.map(Keyword), SIMPLE, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["", "#jepsen.history.Op"]),
    st.sampled_from([" ", ", ", "  "]),
)
def test_the_fast_way_reads_the_same(maps: list[dict[str, Any]], tag: str, space: str) -> None:
    """Lines of one plain map each are read as the reader reads them, or left to it."""
    lines = [f"{tag}{written(each, space)}\n" for each in maps]
    texts = [plain_map(line) for line in lines]
    assert None not in texts
    forms = fast_forms([text for text in texts if text is not None])
    assert forms is not None
    assert all(same(unmarked(form), plain(each)) for form, each in zip(forms, maps, strict=True))
    assert [plain(form) for line in lines for form in read_all(line)] == [plain(each) for each in maps]


@pytest.mark.parametrize(
    ("line", "hard"),
    [
        ('{:error "a } b"}', True), ("{:a 1} ; {:b 2}", True), ("{:a #{1 2}}", True), ("{:a (1 2)}", True),
        ("{:a \\b}", True), ("{:a 1N}", True), ("{:a 007}", True), ("{:a NaN}", True), ("{:a 1/2}", True),
        ("{:a [1 2}", True), ("{:a symbol}", True), ("{:a {}, :b [ ]}", False), ("{:a -1.5e3}", False),
    ],
)  # fmt: skip
def test_the_fast_way_leaves_what_is_hard(line: str, hard: bool) -> None:
    """Strings, comments, sets, bignums and what is wrong go to the reader."""
    text = plain_map(line)
    assert (text is None or fast_forms([text]) is None) == hard


def test_every_kind_of_atom() -> None:
    """Numbers, characters, strings with escapes, tags, sets and constants."""
    text = (
        r'+5 -0 1N 22/7 1.5 1e3 2.5M \a \newline \u0041 "a\n\t\"\\\u00e9" #inst "2026" #{1 2} (a b) ##Inf #my/rec{:a 1}'
    )
    assert read_all(text) == [
        5, 0, 1, Fraction(22, 7), 1.5, 1000.0, Decimal("2.5"), "a", "\n", "A", 'a\n\t"\\é', "2026", frozenset({1, 2}),
        ["a", "b"], float("inf"), {"a": 1},
    ]  # fmt: skip
    assert [type(each) for each in read_all(":a a nil true")] == [Keyword, Symbol, type(None), bool]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{:a 1\n :b}", 1, "a key without a value"),
        ("[1 2\n\n", 1, "ends within what [ began"),
        ('\n"abc\n', 2, "ends within a string"),
        ("1\n]", 2, "] closes nothing"),
        ("[1\n}", 2, "does not close [ of line 1"),
        ("{:a 1 :a 2}", 1, "the same key twice"),
        ("#{1 1}", 1, "the same element twice"),
        ('"\\q"', 1, "\\q is not an escape"),
        ("\n\n1/0", 3, "divides by zero"),
        ("12abc", 1, "unexpected '12abc'"),
        ("#_", 1, "ends within what #_ began"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    """What is no EDN is refused with the line and what is wrong there."""
    with pytest.raises(EdnError) as raised:
        read_all(text)
    assert message in str(raised.value)
    assert raised.value.line == line


@pytest.mark.parametrize("text", ["[{:a 1}\n {:a 2}]", "({:a 1} {:a 2})", "{:a 1}\n{:a 2}\n"])
def test_the_outermost_vector_is_opened(text: str) -> None:
    """One big vector gives its elements one by one, as lines do."""
    reader = EdnReader(unwrap=True)
    assert [form for _, form in reader.feed(text, 1)] == [{"a": 1}, {"a": 2}]
    reader.end()
