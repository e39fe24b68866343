"""Parses and writes durations for the command line: ``90``, ``90s``, ``5m``, ``1h30m``. Pure. Owns no option."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = r"\d{1,12}(?:\.\d{1,12})?"
#: Hours, minutes and seconds; or a plain number, which means seconds.
_PARTS = re.compile(rf"(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?|({_NUMBER})", re.ASCII)
_UNITS_S = (3600, 60, 1, 1)


def seconds_of(text: object) -> float:
    """The seconds of a duration. A number, such as a default, is returned as it is.

    Raises ValueError with what it must be, without the option's name.
    """
    if isinstance(text, float):
        return text
    match = _PARTS.fullmatch(str(text))
    if match is None or not any(match.groups()):
        raise ValueError(f"must be a time such as 90s, 5m or 1h30m, or a number of seconds, not {text!r}")
    return float(sum(Decimal(part or 0) * unit for part, unit in zip(match.groups(), _UNITS_S, strict=True)))


def plain_seconds(seconds: float) -> str:
    """The seconds as a text that ``seconds_of`` can read, without an exponent."""
    return f"{Decimal(repr(seconds)):f}".removesuffix(".0")
