"""One configuration key and a table of them: parsing, limits, unknown keys, typed access.

Owns what all tables share. Does not own any key, and no rule between keys (each table's module does).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any

from cluster.config.errors import ConfigError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

#: What a value is once it is parsed. A list is a tuple of strings; None means "not set".
Value = bool | int | float | str | tuple[str, ...] | None


class KeyType(Enum):
    """The types of Kafka's ``ConfigDef`` (its ints and longs are one here); a password is never printed."""

    BOOLEAN = "boolean"
    INT = "int"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    PASSWORD = "password"


#: More digits than any setting has, which ``int`` would refuse in words of its own.
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,5})?")
#: Characters of a value that an error quotes.
_QUOTED = 200

_EXPECTED = {
    KeyType.BOOLEAN: "true or false",
    KeyType.INT: "an integer",
    KeyType.DOUBLE: "a number",
    KeyType.STRING: "a string",
    KeyType.LIST: "a comma-separated list",
    KeyType.PASSWORD: "a string",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: Kafka's spelling, type, default, limits (both inclusive) and one line of documentation.

    ``carried`` keys are accepted, stored and reported, so that an existing file works, but have no effect.
    """

    name: str
    kind: KeyType
    default: Value
    doc: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    carried: bool = False

    def parse(self, raw: object, what: str) -> Value:
        """The typed value of ``raw`` (a text from a file or command line, or a Python value).

        Raises ConfigError with ``what`` ("broker", "topic") in the text.
        """
        value = self._convert(raw, what)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.minimum is not None and value < self.minimum:
                raise self._error(raw, what, f"at least {self.minimum:.17g}")
            if self.maximum is not None and value > self.maximum:
                raise self._error(raw, what, f"at most {self.maximum:.17g}")
        if self.choices and value is not None:
            for part in value if isinstance(value, tuple) else (value,):
                if part not in self.choices:
                    raise self._error(raw, what, "one of " + ", ".join(self.choices))
            if isinstance(value, tuple):
                value = tuple(dict.fromkeys(value))
        return value

    def _convert(self, raw: object, what: str) -> Value:
        if raw is None:
            if self.default is None:
                return None
            raise self._error(raw, what, _EXPECTED[self.kind])
        if self.kind is KeyType.BOOLEAN:
            if isinstance(raw, bool):
                return raw
            text = str(raw).strip().lower()
            if text in ("true", "false"):
                return text == "true"
        elif self.kind is KeyType.LIST:
            parts = raw.split(",") if isinstance(raw, str) else raw
            if isinstance(parts, list | tuple):
                return tuple(str(part).strip() for part in parts if str(part).strip())
        elif self.kind in (KeyType.STRING, KeyType.PASSWORD):
            return str(raw).lower() if isinstance(raw, bool) else str(raw).strip()
        elif not isinstance(raw, bool):
            return self._number(str(raw).strip(), raw, what)
        raise self._error(raw, what, _EXPECTED[self.kind])

    def _number(self, text: str, raw: object, what: str) -> Value:
        """As people write numbers: Python also takes underscores, the digits of every script, and what is no number."""
        if self.kind is KeyType.DOUBLE:
            if _DECIMAL.fullmatch(text) and math.isfinite(value := float(text)):
                return value
        elif _INTEGER.fullmatch(text):
            return int(text)
        raise self._error(raw, what, _EXPECTED[self.kind])

    def _error(self, raw: object, what: str, expected: str) -> ConfigError:
        shown = "(hidden)" if self.kind is KeyType.PASSWORD else _brief(repr(raw))
        return ConfigError(f"invalid value {shown} for {what} config key '{self.name}': expected {expected}")

    def text(self, value: Value) -> str:
        """The value as Kafka's files spell it; the inverse of ``parse``. None is the empty text."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        return ",".join(value) if isinstance(value, tuple) else str(value)


def _brief(text: str) -> str:
    """What an error quotes of a value, which may be megabytes long."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}... ({len(text)} characters)"


class KeyTable:
    """The keys of one kind of thing, by name, in the order in which they are documented."""

    def __init__(self, what: str, keys: Iterable[Key]) -> None:
        self.what = what
        self.keys: dict[str, Key] = {}
        for key in keys:
            if key.name in self.keys:
                raise ValueError(f"{what} config key {key.name!r} is declared twice")
            self.keys[key.name] = key

    def __repr__(self) -> str:
        return f"KeyTable({self.what}, {len(self.keys)} keys)"

    def parse(self, mapping: Mapping[str, object]) -> dict[str, Value]:
        """The typed values of exactly the keys in ``mapping``. Raises ConfigError at the first that is wrong."""
        return {name: self.key(name).parse(raw, self.what) for name, raw in mapping.items()}

    def normal(self, mapping: Mapping[str, object]) -> dict[str, str]:
        """The texts to store: as ``text`` spells them, without blanks, zeros and repetitions that mean nothing.

        So no value takes more room than it needs. Raises ConfigError.
        """
        return {name: self.keys[name].text(value) for name, value in self.parse(mapping).items()}

    def key(self, name: str) -> Key:
        """Raises ConfigError with the nearest known key if there is no such key."""
        key = self.keys.get(name)
        if key is None:
            near = suggestion(name, self.keys) or "; docs/configuration.md lists all"
            raise ConfigError(f"unknown {self.what} config key '{_brief(str(name))}'{near}")
        return key

    def carried_warning(self, name: str) -> str:
        """The line about a key that was set and has no effect."""
        return f"{self.what} config key '{name}' is accepted but has no effect"

    def defaults(self) -> dict[str, Value]:
        return {name: key.default for name, key in self.keys.items()}


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` with the nearest of ``known``, or nothing if none is near."""
    if len(str(name)) > _QUOTED:
        # To compare takes time for each of its characters, and no key is nearly so long.
        return ""
    near = get_close_matches(str(name).strip().lower().replace("_", "."), list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


class TypedConfig(Mapping[str, Any]):
    """All values of one table: those given and, for the rest, the defaults. Immutable.

    ``config["replica.lag.time.max.ms"]`` is an int, as the table says. ``warnings`` are lines for people about
    settings that are legal and probably not meant.
    """

    def __init__(self, table: KeyTable, given: Mapping[str, Value], warnings: Iterable[str] = ()) -> None:
        self.table = table
        self.given: dict[str, Value] = dict(given)
        self.warnings: tuple[str, ...] = tuple(warnings)
        self._values = {**table.defaults(), **self.given}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={'(hidden)' if key.kind is KeyType.PASSWORD else key.text(value)}"
            for name, value in self.given.items()
            if (key := self.table.keys[name])
        )
        return f"{type(self).__name__}({shown})"

    def is_given(self, name: str) -> bool:
        """Whether the key was set, rather than left at its default."""
        return name in self.given

    def as_text(self, *, given_only: bool = True) -> dict[str, str]:
        """The values as texts for a properties file or a wire response; unset ones are left out."""
        chosen = self.given if given_only else self._values
        return {name: self.table.keys[name].text(value) for name, value in chosen.items() if value is not None}


def flag(name: str, default: bool | None, doc: str, *, carried: bool = False) -> Key:
    """A boolean key."""
    return Key(name, KeyType.BOOLEAN, default, doc, carried=carried)


def integer(
    name: str,
    default: int | None,
    doc: str,
    minimum: int | None = None,
    maximum: int | None = None,
    *,
    carried: bool = False,
) -> Key:
    """An integer key with inclusive limits."""
    return Key(name, KeyType.INT, default, doc, minimum, maximum, carried=carried)


def number(name: str, default: float, doc: str, minimum: float, maximum: float, *, carried: bool = False) -> Key:
    """A key with a fraction."""
    return Key(name, KeyType.DOUBLE, default, doc, minimum, maximum, carried=carried)


def text(
    name: str,
    default: str | None,
    doc: str,
    choices: Iterable[str] = (),
    *,
    carried: bool = False,
    secret: bool = False,
) -> Key:
    """A text key, perhaps one of a few choices; ``secret`` ones are never printed."""
    kind = KeyType.PASSWORD if secret else KeyType.STRING
    return Key(name, kind, default, doc, choices=tuple(choices), carried=carried)


def texts(name: str, default: tuple[str, ...], doc: str, choices: Iterable[str] = (), *, carried: bool = False) -> Key:
    """A key with a comma-separated list."""
    return Key(name, KeyType.LIST, default, doc, choices=tuple(choices), carried=carried)
