"""Records of an internal topic that cannot be read, while a coordinator takes over their partition.

Owns what is told of them: how many, and the first ones with their offsets. Does not own what of the partition is
unavailable for it (the loader of each topic), nor the telling (``cluster.broker.coordinator_loading``).
"""

from __future__ import annotations

#: Records that are named, and characters of the text about each: there may be millions, with long names.
NAMED = 5
_MOST_CHARACTERS = 300


class UnreadableRecords:
    """Of one partition. ``named``: a text about each of the first ones."""

    __slots__ = ("count", "named")

    def __init__(self) -> None:
        self.count = 0
        self.named: list[str] = []

    def __repr__(self) -> str:
        return f"<UnreadableRecords {self.count}>"

    def __str__(self) -> str:
        more = f", and {self.count - len(self.named)} more" if self.count > len(self.named) else ""
        return "; ".join(self.named) + more

    def note(self, offset: int, text: str) -> None:
        """One record, at ``offset`` or in the batch that begins there."""
        self.count += 1
        if self.count <= NAMED:
            self.named.append(f"at offset {offset}: {text[:_MOST_CHARACTERS]}")
