"""ProducerHosts: from which host the producers of one log came, and how much of a room is for one host.

Owns the shares: one host cannot take the last eighth of a room. That is for hosts that have little, so that a crowd of
made-up producers keeps no one else out. Does not own the producers (``producers.py``). Pure.

A host is known of the producers that a leader has admitted since the broker started: no log says whose a batch was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

#: Of whom it is not known.
UNKNOWN = ""
#: This part of a room is for hosts that have little.
RESERVED_PART = 8
#: A host that has less than this part of a room has little.
LITTLE_PART = 16


def has_little(count: int, most: int) -> bool:
    """Whether a host that has that many producers is one of those for which the last part of a room is."""
    return count <= max(1, most // LITTLE_PART)


def room_of(host: str, count: int, most: int) -> int:
    """How many producers there may be when one more of ``host`` is admitted, which has ``count``."""
    return most if host == UNKNOWN or has_little(count + 1, most) else most - most // RESERVED_PART


def crowds(counts: Counter[str], most: int) -> frozenset[str]:
    """The hosts that have more than a little."""
    return frozenset(host for host, count in counts.items() if not has_little(count, most))


class ProducerHosts:
    """``counts``: the producers of each host that is known."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}
        self.counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"ProducerHosts({dict(self.counts)})"

    def get(self, producer_id: int) -> str:
        return self._of.get(producer_id, UNKNOWN)

    def admit(self, producer_id: int, host: str) -> None:
        """A producer that was not known has written from there."""
        self._forget(producer_id)
        if host != UNKNOWN:
            self._of[producer_id] = host
            self.counts[host] += 1

    def keep(self, known: Container[int]) -> None:
        """The log remembers no other producers anymore."""
        for producer_id in [each for each in self._of if each not in known]:
            self._forget(producer_id)

    def _forget(self, producer_id: int) -> None:
        host = self._of.pop(producer_id, UNKNOWN)
        if host != UNKNOWN:
            self.counts[host] -= 1
            if not self.counts[host]:
                del self.counts[host]
