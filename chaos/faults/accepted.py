"""The rules with which faults declare their parameters, and the wording of each rule. Pure; knows no fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One parameter: its name, its allowed values in words, and a function that checks a value."""

    name: str
    words: str
    allows: Callable[[object], bool]


def one_of(name: str, *values: str) -> Rule:
    """One of a few texts."""
    return Rule(name, " or ".join(values), lambda value: value in values)


def integer(name: str, least: int, most: int) -> Rule:
    """A whole number within these bounds, both included."""
    return Rule(
        name,
        f"an integer from {least} to {most}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
    )


def share(name: str) -> Rule:
    """A number above 0 and at most 1."""
    return Rule(
        name,
        "a number above 0 and at most 1",
        lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1,
    )


def truth(name: str) -> Rule:
    """True or false."""
    return Rule(name, "true or false", lambda value: isinstance(value, bool))


def one_way(name: str) -> Rule:
    """One direction of a link: that of requests or that of responses."""
    return one_of(name, "request", "response")
