"""Text that came from elsewhere, made fit for a file. Owns which characters are replaced, and knows no format.

JSON may hold half of a surrogate pair (``"\\ud800"``), which is no character: neither UTF-8 nor Arrow can hold it.
"""

from __future__ import annotations

import re

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
#: What XML 1.0 cannot hold, not even escaped: lone surrogates, most control characters, U+FFFE and U+FFFF.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def encodable(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, so that UTF-8 can hold it."""
    return _LONE_SURROGATES.sub(_REPLACEMENT, text)


def fit_for_xml(text: str) -> str:
    """The text with U+FFFD for everything that XML 1.0 cannot hold, lone surrogates included."""
    return _NOT_IN_XML.sub(_REPLACEMENT, text)
