"""The shape of a planted example: what is done to a clean story, and exactly what must be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.stories import Story

#: A check, and one of its causes if it tells several apart.
Key = tuple[str, str | None]


@dataclass(frozen=True)
class Planted:
    """``expected``: (check, cause) -> what the example must show, by field name of ``Found``.

    ``neighbor``: the name of what looks most like it and is legal: nothing of this is found there, or an event in the
    evidence excuses it.
    """

    plant: Callable[[Story], None]
    expected: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)
    neighbor: str | None = None

    @property
    def accused(self) -> set[Key]:
        """What must be found and is not excused."""
        return {key for key, fields in self.expected.items() if fields.get("excuse") is None}
