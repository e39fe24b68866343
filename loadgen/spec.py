"""Specifications: a word, or a mapping with one word as its key, as a workload's YAML and JSON have them. Pure.

Owns taking them apart with errors that say what is wanted. What the words mean is their users'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


class SpecError(ValueError):
    """A specification is invalid. The message says what is valid."""


def one_of(what: str, spec: object, words: Sequence[str]) -> tuple[str, Any]:
    """Split ``word`` or ``{word: value}`` into the word and its value, None for a plain word. Raises SpecError."""
    if isinstance(spec, Mapping) and len(spec) == 1:
        ((word, value),) = spec.items()
    else:
        word, value = spec, None
    if not isinstance(word, str) or word not in words:
        raise SpecError(f"{what} is one of {', '.join(words)}, not {spec!r}")
    return word, value


def numbers_of(
    what: str, value: object, names: Sequence[str], defaults: Mapping[str, float] | None = None
) -> list[float]:
    """The numbers of a mapping in the order of ``names``. Raises SpecError for any other or absent one."""
    given = {**(defaults or {}), **(value if isinstance(value, Mapping) else {})}
    if not isinstance(value, Mapping) or set(given) != set(names):
        raise SpecError(f"{what} needs a mapping with {', '.join(names)}, not {value!r}")
    for name in names:
        number = given[name]
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise SpecError(f"{name} of {what} is a number, not {number!r}")
    return [float(given[name]) for name in names]
