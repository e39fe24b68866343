"""How many members of a group offer each protocol.

Owns the counts. A name that no one offers is not kept: a member may offer other names each time. Does not own which
protocol is chosen (``group``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from cluster.coordinator.group.requests import Protocols


class Supporters:
    """Of one group."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Supporters of {len(self._counts)} protocols>"

    @property
    def offered(self) -> AbstractSet[str]:
        """The protocols that some member offers."""
        return self._counts.keys()

    def offered_by(self, members: int) -> frozenset[str]:
        """Those that this many members offer."""
        return frozenset(name for name, count in self._counts.items() if count == members)

    def is_offered_by(self, members: int, protocols: Protocols) -> bool:
        """Whether this many members offer one of ``protocols``."""
        return any(self._counts[name] == members for name, _ in protocols)

    def add(self, protocols: Protocols) -> None:
        """A member offers these."""
        self._counts.update({name for name, _ in protocols})

    def remove(self, protocols: Protocols) -> None:
        """It no longer does."""
        counts = self._counts
        for name in {name for name, _ in protocols}:
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
