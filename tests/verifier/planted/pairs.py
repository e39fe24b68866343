"""The table of pairs: check and cause -> a planted example -> its nearest legal neighbor. Made from the examples."""

from __future__ import annotations

from typing import NamedTuple

from tests.verifier.planted import PLANTED


class Pair(NamedTuple):
    """The check must go red on the one and stay silent on the other."""

    check: str
    cause: str | None
    planted: str
    neighbor: str

    def __str__(self) -> str:
        name = self.check if self.cause is None else f"{self.check}/{self.cause}"
        return f"{name}: {self.planted} | {self.neighbor}"


def pairs() -> list[Pair]:
    """A row for each check that is accused in an example and not in its neighbor, by check."""
    found = []
    for name, example in PLANTED.items():
        if example.neighbor is not None:
            silent = {check for check, _ in PLANTED[example.neighbor].accused}
            found += [Pair(*key, name, example.neighbor) for key in example.accused if key[0] not in silent]
    return sorted(found, key=str)
