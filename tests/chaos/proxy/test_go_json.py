"""JSON as Go reads and writes it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxy import go_json
from chaos.proxy.go_json import GoJsonError, JsonObject, Number

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def plain(value: go_json.Json) -> Any:
    """A decoded value as Python's own decoder would give it."""
    match value:
        case JsonObject(pairs):
            return {key: plain(item) for key, item in pairs}
        case Number():
            return json.loads(value)
        case list():
            return [plain(item) for item in value]
        case _:
            return value


@given(_VALUES, st.sampled_from(["", " trailing", "}", "\n{}", "\x00"]))
def test_the_first_value_counts(value: Any, rest: str) -> None:
    """Any value is read back, whatever follows it."""
    text = json.dumps(value)
    if isinstance(value, int) and not isinstance(value, bool):
        rest = " " + rest
    assert plain(go_json.decode((text + rest).encode())) == value


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_one_error(body: bytes) -> None:
    """Untrusted bytes never raise anything but GoJsonError."""
    with contextlib.suppress(GoJsonError):
        go_json.decode(body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "EOF"),
        (b" \n\t", "EOF"),
        (b'{"name":"a"', "unexpected EOF"),
        (b'{"name":"a', "unexpected EOF"),
        (b"tru", "unexpected EOF"),
        (b"{bad", "invalid character 'b' looking for beginning of object key string"),
        (b"[bad", "invalid character 'b' looking for beginning of value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"{\"a\":'b'}", "invalid character '\\'' looking for beginning of value"),
        (b'{"a":"\n"}', "invalid character '\\n' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u12x4"', "invalid character in \\u hexadecimal character escape"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_texts_of_syntax_errors(body: bytes, text: str) -> None:
    """Broken JSON is refused with the text that Go has for it."""
    with pytest.raises(GoJsonError) as caught:
        go_json.decode(body)
    assert str(caught.value) == text


def read(body: str, **fields: go_json.GoKind) -> dict[str, go_json.Json]:
    return go_json.read_struct(go_json.decode(body.encode()), "T", fields)


def test_field_names_in_any_case_the_last_wins() -> None:
    """Names match without regard to case; later values replace earlier ones; unknown names are ignored."""
    assert read('{"NAME":"a","name":"b","Nam":1}', name="string") == {"name": "b"}


def test_null_is_not_given() -> None:
    """null leaves the default, at the top and in a field."""
    assert read("null", name="string") == {}
    assert read('{"name":null}', name="string") == {}


@pytest.mark.parametrize(
    ("literal", "fits"),
    [("5", True), ("-9223372036854775808", True), ("9223372036854775808", False), ("5.0", False), ("1e3", False)],
)
def test_integers_take_no_fraction(literal: str, fits: bool) -> None:
    """An int64 field takes what Go's takes: decimal integers of 64 bits."""
    if fits:
        assert go_json.integer(read(f'{{"n":{literal}}}', n="int64")["n"]) == int(literal)
        return
    with pytest.raises(GoJsonError, match=f"cannot unmarshal number {literal} into Go struct field T.n of type int64"):
        read(f'{{"n":{literal}}}', n="int64")


def test_the_first_wrong_type_is_reported() -> None:
    """As Go does: everything is looked at, the first mistake is told."""
    with pytest.raises(GoJsonError, match=r"cannot unmarshal bool into Go struct field T\.a of type string"):
        read('{"a":true,"b":[]}', a="string", b="string")


def test_a_value_of_the_wrong_shape() -> None:
    """A list where Go wants a struct is refused with Go's text."""
    with pytest.raises(GoJsonError, match="json: cannot unmarshal array into Go value of type T"):
        read("[]", name="string")


@given(st.floats(0, 1, width=32))
def test_float32_prints_shortest(value: float) -> None:
    """The shortest decimal of the same float32: 0.1 stays 0.1."""
    short = go_json.float32(Number(repr(value)))
    assert go_json.float32(Number(repr(short))) == short
    assert len(repr(short)) <= len(repr(value))


def test_encode_escapes_as_go_does() -> None:
    """No spaces; < > & and the line separators are escaped; other text is not."""
    assert go_json.encode({"a": "<b>&\u2028é", "n": [1, None]}) == (
        '{"a":"\\u003cb\\u003e\\u0026\\u2028é","n":[1,null]}'.encode()
    )


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """Text can always be encoded again."""
    assert go_json.text(go_json.decode(b'"a\\ud800"')) == "a\ufffd"
