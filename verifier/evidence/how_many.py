"""How many of something, in words for people: ``1 run``, ``1,200 runs``. Owns the choice of the number's form."""

from __future__ import annotations


def how_many(count: int, one: str, several: str = "") -> str:
    """``count`` with ``one`` if it is one, or else with ``several``, which is ``one`` and an s unless it is given."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"
