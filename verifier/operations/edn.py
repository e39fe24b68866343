"""Reads EDN line by line. Owns the syntax; does not know what an operation means.

``EdnReader`` takes lines and returns each form when it is complete: the forms of a file, or the elements of one big
vector. So a file of any size is read in bounded memory. ``fast_forms`` is ten times as fast for lines with one plain
map each: it rewrites many of them as JSON and parses that in C. It returns None if the result could be wrong.

Maps become dicts, vectors and lists become lists, and sets become frozensets. Keywords and symbols become strings of
their own types, ratios ``Fraction``, ``1N`` an int and ``1M`` a ``Decimal``. Tags are dropped: a record becomes a map.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verifier.operations.model import MAP, MAP_END

_END = r"(?=[\s,\"()\[\]{};]|$)"
_TOKEN = re.compile(
    rf"""
      (?P<space>[\s,]+|;[^\n]*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<open>[(\[{{]|\#{{)
    | (?P<close>[)\]}}])
    | (?P<discard>\#_)
    | (?P<special>\#\#(?:Inf|-Inf|NaN){_END})
    | (?P<tag>\#[A-Za-z][^\s,\"()\[\]{{}};]*)
    | (?P<keyword>:[^\s,\"()\[\]{{}};]+)
    | (?P<number>[+-]?[0-9]+(?:N|/[0-9]+|(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M?)?{_END})
    | (?P<char>\\(?:newline|return|space|tab|formfeed|backspace|u[0-9A-Fa-f]{{4}}|[^\s]){_END})
    | (?P<symbol>[^\s,\"()\[\]{{}};\\#:0-9][^\s,\"()\[\]{{}};]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARACTERS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b"}
_SPECIAL = {"##Inf": float("inf"), "##-Inf": float("-inf"), "##NaN": float("nan")}
_CONSTANTS = {"nil": None, "true": True, "false": False}
_CLOSES = {"(": ")", "[": "]", "{": "}", "#{": "}"}


#: The longest number that is read, in characters: reading takes time quadratic in the length. Python's limit is 4,300.
MOST_DIGITS = 1_000


class EdnError(ValueError):
    """Text is not EDN. ``line`` is the line number that the caller passed; the message does not repeat it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Keyword(str):
    """A keyword such as ``:name``, without its colon."""

    __slots__ = ()


class Symbol(str):
    """A symbol: a bare name."""

    __slots__ = ()


@dataclass(slots=True)
class _Frame:
    """An open form: a bracket, a tag or a discard, with its items so far."""

    kind: str
    line: int
    items: list[Any] = field(default_factory=list)


class EdnReader:
    """Takes lines, and returns (first line, form) of each form. ``unwrap``: returns the elements of an outer vector."""

    def __init__(self, *, unwrap: bool = False) -> None:
        self._unwrap = unwrap
        self._stack: list[_Frame] = []
        self._outer: _Frame | None = None
        self._carry = ""
        self._carry_line = 0

    @property
    def is_between_forms(self) -> bool:
        """Whether no form is open, except perhaps the outermost vector."""
        return not self._stack and not self._carry

    def feed(self, text: str, line: int) -> Iterator[tuple[int, Any]]:
        """The forms that end on this line, which includes its line break. Raises ``EdnError``."""
        if self._carry:
            text, line, self._carry = self._carry + text, self._carry_line, ""
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                if text[at] == '"':
                    self._carry, self._carry_line = text[at:], line
                    return
                raise EdnError(line, f"unexpected {text[at : at + 20].strip()!r}")
            kind, word, at = str(token.lastgroup), token[0], token.end()
            if kind == "open":
                self._open(word, line)
            elif kind in ("tag", "discard"):
                self._stack.append(_Frame(word, line))
            elif kind == "close":
                yield from self._close(word, line)
            elif kind != "space":
                yield from self._value(_atom(kind, word, line), line)
            line += word.count("\n")

    def end(self) -> None:
        """Raises ``EdnError`` if a form is still open."""
        if self._carry:
            raise EdnError(self._carry_line, "the file ends within a string")
        for frame in [*self._stack[:1], *([self._outer] if self._outer else [])]:
            raise EdnError(frame.line, f"the file ends within what {frame.kind} began here")

    def _open(self, word: str, line: int) -> None:
        if self._unwrap and not self._stack and self._outer is None and word in "([":
            self._outer = _Frame(word, line)
        else:
            self._stack.append(_Frame(word, line))

    def _close(self, word: str, line: int) -> Iterator[tuple[int, Any]]:
        if not self._stack:
            if self._outer is None or _CLOSES[self._outer.kind] != word:
                raise EdnError(line, f"{word} closes nothing")
            self._outer = None
            return
        frame = self._stack.pop()
        if _CLOSES.get(frame.kind) != word:
            raise EdnError(line, f"{word} does not close {frame.kind} of line {frame.line}")
        yield from self._value(_collection(frame), frame.line)

    def _value(self, value: Any, line: int) -> Iterator[tuple[int, Any]]:
        """Adds a complete value to the open form, or returns it if no form is open."""
        while self._stack:
            frame = self._stack[-1]
            if frame.kind == "#_":
                self._stack.pop()
                return
            if frame.kind in _CLOSES:
                frame.items.append(value)
                return
            self._stack.pop()  # a tag is dropped, and its value kept
            line = frame.line
        yield line, value


def read_all(text: str) -> list[Any]:
    """All forms of a text. Raises ``EdnError``."""
    reader = EdnReader()
    forms = [form for _, form in reader.feed(text, 1)]
    reader.end()
    return forms


def _atom(kind: str, word: str, line: int) -> Any:
    match kind:
        case "keyword":
            return Keyword(word[1:])
        case "string":
            text = _ESCAPE.sub(lambda match: _unescaped(match[1], line), word[1:-1])
            # Java writes a character beyond 16 bits as two escapes
            return _paired(text) if _SURROGATE.search(text) else text
        case "number":
            return _number(word, line)
        case "special":
            return _SPECIAL[word]
        case "char":
            name = word[1:]
            if name in _CHARACTERS:
                return _CHARACTERS[name]
            return chr(int(name[1:], 16)) if len(name) == 5 else name
    return _CONSTANTS[word] if word in _CONSTANTS else Symbol(word)


def _unescaped(code: str, line: int) -> str:
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise EdnError(line, f"\\{code} is not an escape in a string")
    return _ESCAPES[code]


def _paired(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _number(word: str, line: int) -> Any:
    if word[-1] == "M":
        return Decimal(word[:-1])
    if len(word) > MOST_DIGITS:
        raise EdnError(line, f"a number has {len(word):,} characters; at most {MOST_DIGITS:,} are read")
    if word[-1] == "N":
        return int(word[:-1])
    if "/" in word:
        above, _, below = word.partition("/")
        if not int(below):
            raise EdnError(line, f"{word} divides by zero")
        return Fraction(int(above), int(below))
    return float(word) if any(each in word for each in ".eE") else int(word)


def _collection(frame: _Frame) -> Any:
    items = frame.items
    if frame.kind in "([":
        return items
    if frame.kind == "#{":
        made = frozenset(map(_frozen, items))
        if len(made) != len(items):
            raise EdnError(frame.line, "a set has the same element twice")
        return made
    if len(items) % 2:
        raise EdnError(frame.line, "a map has a key without a value")
    mapping = {_frozen(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
    if 2 * len(mapping) != len(items):
        raise EdnError(frame.line, "a map has the same key twice")
    return mapping


def _frozen(value: Any) -> Any:
    """The value in a hashable form, to be a key of a map or an element of a set."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((key, _frozen(each)) for key, each in value.items())
    return value


#: Anything that ``fast_forms`` cannot read: strings, comments, escapes, lists, and tags or sets after the first brace.
_HARD = re.compile(r"[\"\\;#()\t\v\f^\0]")
_KEYWORD = re.compile(r":[^\[\]{},\s:\"]+")
_UNTIDY = re.compile(r",,|\[,|,\]|\{,|,\}")
_TAG = re.compile(r"#[A-Za-z][A-Za-z0-9.-]*(?=\{)")
_QUOTED: dict[str, str] = {}


def plain_map(line: str) -> str | None:
    """The text of a line's only map, without its tag; None if the line is certainly not a single map."""
    text = line.strip(" \t\r\n,")
    if text[:1] == "#":
        tag = _TAG.match(text)
        if tag is None:
            return None
        text = text[tag.end() :]
    return text if text[:1] == "{" and text[-1:] == "}" else None


def fast_forms(maps: Sequence[str]) -> list[Any] | None:
    """One form for each of these texts of maps (``plain_map``); None if the result could be wrong.

    A map becomes a list between ``MAP`` and ``MAP_END``, and keywords become strings. Other strings are refused. The
    caller must check that each map ends with ``MAP_END``: it does not if a bracket closes another kind of bracket.
    """
    text = "\n".join(maps)
    if _HARD.search(text):
        return None
    text = text.replace(", ", ",").replace(" ", ",")
    if _UNTIDY.search(text):
        text = re.sub(r",+", ",", text)
        text = re.sub(r"(?<=[\[{]),|,(?=[\]}])", "", text)
    text = _KEYWORD.sub(_quoted, text).replace(",nil", ",null").replace("[nil", "[null")
    text = text.replace("{}", "\0").replace("{", f'["{MAP}",').replace("}", f',"{MAP_END}"]')
    text = text.replace("\0", f'["{MAP}","{MAP_END}"]')
    try:
        forms = json.loads(f"[{text.replace(chr(10), ',')}]", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return forms if len(forms) == len(maps) else None


def _quoted(match: re.Match[str]) -> str:
    """A keyword as a JSON string. The results are cached, because histories repeat a few keywords."""
    word = match[0]
    quoted = _QUOTED.get(word)
    if quoted is None:
        quoted = f'"{word[1:]}"'
        if len(_QUOTED) < 1_000:
            _QUOTED[word] = quoted
    return quoted


def _no_constant(name: str) -> Any:
    raise ValueError(name)
