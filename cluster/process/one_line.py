"""Text that came from elsewhere, made fit for one line of a log, of a terminal, or of a file for people.

Owns which characters are spelled out, and the words for what the system refuses. A topic, a client id or a file may
hold the end of a line, behind which a line of a log can be forged, or what a terminal obeys. Knows no format of a file.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
from typing import Any

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: Control characters (but the tab), what ends a line elsewhere, what turns the direction of writing, half characters.
_SPELLED = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
_REASONS = {
    errno.ENOENT: "there is no such file or directory",
    errno.EISDIR: "it is a directory, not a file",
    errno.ENOTDIR: "a part of its path is a file",
    errno.EACCES: "permission denied",
    errno.EEXIST: "a file of that name is in the way",
}
_ERRNO = re.compile(r"\[Errno -?\d+\] ")
_SHORT = {"\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    r"""The text on one line, harmless to a terminal: what is not is spelled out, as in ``\n``, ``\x1b``, ``\u202e``."""
    return _SPELLED.sub(_spell, text)


def escaped_json(value: object) -> str:
    """The value as JSON on one line, letters of all scripts as they are, what ``printable`` spells out as JSON does."""
    return _SPELLED.sub(lambda match: json.dumps(match[0])[1:-1], json.dumps(value, ensure_ascii=False))


def _spell(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if code <= 0xFF:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def reason(error: OSError) -> str:
    """Why the system refused, in words for people and without its number."""
    number = error.errno or 0
    if (words := _REASONS.get(number)) is not None:
        return words
    # a failed look-up of a name has a number of its own kind
    text = os.strerror(number) if number > 0 else error.strerror or _ERRNO.sub("", str(error))
    return text[:1].lower() + text[1:]


class OneLine(logging.Formatter):
    """A record is one line whatever it holds; lines of a traceback are indented, so that none looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "\n".join("    " + printable(line) for line in text.split("\n"))


def log_to(handler: logging.Handler, line: str = FORMAT, *, force: bool = False) -> None:
    """Log what is at least of level INFO to ``handler``. Does nothing if something is logged already, unless forced."""
    handler.setFormatter(OneLine(line))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=force)


def guard_last_resort() -> None:
    """What no one handles, which Python prints on standard error, is one line too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine("%(message)s"))
