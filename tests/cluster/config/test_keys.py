"""Parsing single values, unknown keys, and typed access."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.config.admin import ADMIN_KEYS
from cluster.config.broker_keys import BROKER_KEYS
from cluster.config.consumer import CONSUMER_KEYS
from cluster.config.errors import ConfigError
from cluster.config.keys import Key, KeyTable, KeyType, TypedConfig, flag, integer, number, text, texts
from cluster.config.producer import PRODUCER_KEYS
from cluster.config.topic import TOPIC_KEYS

TABLE = KeyTable(
    "test",
    [
        flag("a.flag", True, "A flag."),
        integer("a.size", 10, "A size.", 1, 100),
        integer("an.optional.size", None, "A size that may be absent."),
        number("a.share", 0.5, "A share.", 0, 1),
        text("a.choice", "one", "A choice.", ("one", "two")),
        text("a.secret", None, "A secret.", secret=True),
        texts("a.list", (), "A list."),
    ],
)


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("a.flag", "TRUE", True),
        ("a.flag", False, False),
        ("a.size", " 7 ", 7),
        ("a.size", 100, 100),
        ("an.optional.size", None, None),
        ("a.share", "0.25", 0.25),
        ("a.choice", "two", "two"),
        ("a.list", "x, y,,z", ("x", "y", "z")),
        ("a.list", ["x", 1], ("x", "1")),
        ("a.list", "", ()),
    ],
)
def test_values_are_parsed_by_their_type(name: str, raw: object, value: object) -> None:
    """A text from a file and a Python value mean the same."""
    assert TABLE.parse({name: raw}) == {name: value}


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("a.flag", "yes", "true or false"),
        ("a.flag", 1, "true or false"),
        ("a.size", "7.5", "an integer"),
        ("a.size", True, "an integer"),
        ("a.size", None, "an integer"),
        ("a.size", 0, "at least 1"),
        ("a.size", "101", "at most 100"),
        ("a.share", "half", "a number"),
        ("a.share", 1.5, "at most 1"),
        ("a.choice", "three", "one of one, two"),
        ("a.list", 7, "a comma-separated list"),
    ],
)
def test_a_value_that_does_not_fit_is_named(name: str, raw: object, expected: str) -> None:
    """The error is one line with the key, the value and what would do."""
    with pytest.raises(ConfigError) as caught:
        TABLE.parse({name: raw})
    assert str(caught.value) == f"invalid value {raw!r} for test config key '{name}': expected {expected}"


def test_an_unknown_key_names_the_nearest() -> None:
    """A misspelt key is refused with the key that was probably meant."""
    with pytest.raises(ConfigError) as caught:
        BROKER_KEYS.parse({"replica.lag.tme.max.ms": "1"})
    assert str(caught.value) == (
        "unknown broker config key 'replica.lag.tme.max.ms'; did you mean 'replica.lag.time.max.ms'?"
    )
    with pytest.raises(ConfigError, match=r"did you mean 'bootstrap\.servers'\?"):
        PRODUCER_KEYS.parse({"bootstrap_servers": "x"})
    with pytest.raises(ConfigError, match=r"unknown topic config key 'zzz'; docs/configuration\.md lists all\Z"):
        TOPIC_KEYS.parse({"zzz": 1})


def test_access_is_typed_and_complete() -> None:
    """Every key has a value, given or default, and a secret is never shown."""
    config = TypedConfig(TABLE, TABLE.parse({"a.size": "7", "a.secret": "hush", "a.list": "x,y"}))
    assert config["a.size"] == 7
    assert config["a.flag"] is True
    assert config.get("no.such.key") is None
    assert "no.such.key" not in config
    assert len(config) == len(TABLE.keys)
    assert config.is_given("a.size")
    assert not config.is_given("a.flag")
    assert repr(config) == "TypedConfig(a.size=7, a.secret=(hidden), a.list=x,y)"
    with pytest.raises(ConfigError, match=r"invalid value \(hidden\)"):
        Key("p", KeyType.PASSWORD, None, "", choices=("x",)).parse("hush", "test")


def test_a_key_is_declared_once() -> None:
    """Two declarations of one key are a programming error."""
    with pytest.raises(ValueError, match="twice"):
        KeyTable("test", [flag("a", True, ""), flag("a", False, "")])


@pytest.mark.parametrize("table", [BROKER_KEYS, TOPIC_KEYS, PRODUCER_KEYS, CONSUMER_KEYS, ADMIN_KEYS], ids=repr)
def test_defaults_are_values_of_their_keys(table: KeyTable) -> None:
    """Every default passes its own key's checks and survives being written and read; every key has a line of text."""
    for key in table.keys.values():
        assert key.parse(key.default, table.what) == key.default
        if key.default is not None:
            assert key.parse(key.text(key.default), table.what) == key.default
        assert key.doc.endswith(".")


@given(
    st.dictionaries(st.sampled_from(sorted(TABLE.keys)), st.one_of(st.none(), st.integers(), st.text(), st.booleans()))
)
def test_any_value_is_parsed_or_refused(mapping: dict[str, object]) -> None:
    """Whatever is given, the answer is a value of the right type or a ConfigError, and values round-trip as text."""
    try:
        parsed = TABLE.parse(mapping)
    except ConfigError:
        return
    texts_ = TypedConfig(TABLE, parsed).as_text()
    assert TABLE.parse(texts_) == {name: value for name, value in parsed.items() if value is not None}


def test_nothing_is_suggested_for_a_key_of_thousands_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """To compare takes time for each of them; the error quotes the beginning."""

    def compare(*_: object, **__: object) -> list[str]:
        raise AssertionError("compared")

    monkeypatch.setattr("cluster.config.keys.get_close_matches", compare)
    with pytest.raises(ConfigError, match=r"unknown broker config key 'xxx.*\.\.\. \(32000 characters\)'; docs/"):
        BROKER_KEYS.key("x" * 32_000)
