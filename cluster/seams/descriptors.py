"""Who may have the file descriptors of this process: the files of logs, connections of clients, and those of peers.

Owns the shares. Each kind is sure of its own share, and what is beyond all shares is taken in the order of arrival: no
flood of one kind keeps the others out. What is kept back is for what a broker must be able to do at any time: write a
checkpoint or an index, sync a directory, reach ZooKeeper and other brokers, turn a connection away.
"""

from __future__ import annotations

import logging
import resource
import sys

from cluster.seams.pace import Pace

logger = logging.getLogger(__name__)

#: Kept back: this many, or an eighth of few.
MOST_KEPT = 512
_KEPT_PART = 8
#: With fewer, what is kept back is little for a broker of four listeners: an operator is warned.
ENOUGH = 1024
#: What the sizes of shares are given in: parts of what is not kept back.
_PARTS = 16
#: It is said this often that connections are turned away.
_WARN_EACH_S = 10.0


def limit() -> int:
    """How many descriptors this process may have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


class Share:
    """One kind of descriptors. It may be used in several threads, which then may take one too many each."""

    def __init__(self, name: str, sixteenths: int) -> None:
        self._name = name
        self._sixteenths = sixteenths
        # A set, as adding to it and taking from it need no lock.
        self._taken: set[int] = set()
        self._pace = Pace(1, _WARN_EACH_S)

    def __repr__(self) -> str:
        return f"<Share of {self._name}: {len(self._taken)}>"

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, descriptor: int) -> bool:
        """Whether this new descriptor may be kept; if so, ``give`` must follow before it is closed."""
        most = limit()
        usable = most - min(MOST_KEPT, most // _KEPT_PART)
        total = len(self._taken) + 1
        for other in _ALL:
            if other is not self:
                total += max(len(other._taken), usable * other._sixteenths // _PARTS)
        if total > usable:
            return False
        self._taken.add(descriptor)
        return True

    def give(self, descriptor: int) -> None:
        """It is about to be closed: not after that, as its number may be someone else's by then."""
        self._taken.discard(descriptor)

    def warn(self, now_s: float) -> None:
        """A connection was turned away."""
        if self._pace.take(now_s) is not None:
            logger.warning(
                "connections are turned away: %s have %d of %d file descriptors, the rest is for others (ulimit -n)",
                *(self._name, len(self._taken), limit()),
            )


FILES = Share("files", 4)
CLIENTS = Share("clients", 2)
PEERS = Share("peers", 1)
_ALL = (FILES, CLIENTS, PEERS)
