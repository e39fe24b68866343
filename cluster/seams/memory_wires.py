"""MemoryWires: what lies between the nodes of an in-memory network: how long things travel, and which ways are cut.

Owns delays, cuts and what a cut holds back. Does not own connections: it keeps the open ends only to close, at a heal,
those that lost something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol

from cluster.seams.units import seconds_of_ms

#: How long a message of this many bytes takes from one node to another, in milliseconds.
Delay = Callable[[str, str, int], float]


def no_delay(source: str, destination: str, size_bytes: int) -> float:
    """Everything arrives in the next turn of the loop."""
    return 0.0


class WireEnd(Protocol):
    """One end of a connection, as the wires know it."""

    #: What its owner hears, it hears here.
    context: Context

    def lost_something(self, source: str, destination: str) -> bool:
        """Whether either direction of its connection dropped a frame between these nodes."""
        ...

    def reset(self, reason: str) -> None:
        """End it, now."""
        ...


class MemoryWires:
    """Nodes are names; a direction is (source, destination)."""

    def __init__(self, delay: Delay = no_delay) -> None:
        self._delay = delay
        self._cut: dict[tuple[str, str], bool] = {}
        self._held: dict[tuple[str, str], list[tuple[Callable[[], None], Context]]] = {}
        # A dictionary for its order: a set of objects has another one in every process.
        self._ends: dict[WireEnd, None] = {}

    def __repr__(self) -> str:
        cuts = ", ".join(f"{source}->{destination}" for source, destination in self._cut)
        return f"{type(self).__name__}({len(self._ends)} ends, cut: {cuts or 'none'})"

    def cut(self, source: str, destination: str, *, lossy: bool = False) -> None:
        """Stop what goes from one node to another, until ``heal``.

        Lossless: what is sent arrives at the heal. Lossy: it is dropped, and each connection that lost something is
        closed, at both ends, at the heal.
        """
        self._cut[source, destination] = lossy

    def heal(self, source: str, destination: str) -> None:
        """Undo ``cut``: deliver what was held, in order, and close the connections that lost something."""
        self._cut.pop((source, destination), None)
        loop = asyncio.get_running_loop()
        for deliver, context in self._held.pop((source, destination), []):
            loop.call_soon(deliver, context=context)
        for end in self._ends:
            if end.lost_something(source, destination):
                loop.call_soon(end.reset, "bytes were lost on the way", context=end.context)

    def is_cut(self, source: str, destination: str) -> bool:
        return (source, destination) in self._cut

    def carry(
        self,
        source: str,
        destination: str,
        size_bytes: int,
        not_before: float,
        act: Callable[[], None],
        context: Context,
    ) -> float:
        """Have ``act`` called in ``context`` when something has traveled; returns when, in loop time."""
        loop = asyncio.get_running_loop()
        # The network's time: the loop may have other clocks for the nodes.
        now = Context().run(loop.time)
        when = max(not_before, now + seconds_of_ms(self._delay(source, destination, size_bytes)))

        def arrive() -> None:
            # A cut that began while it traveled holds it too.
            if (source, destination) in self._cut:
                self._held.setdefault((source, destination), []).append((act, context))
            else:
                act()

        Context().run(lambda: loop.call_at(when, arrive, context=context))
        return when

    async def travel(self, source: str, destination: str) -> None:
        """Return when something without content has traveled from source to destination."""
        arrived = asyncio.Event()
        self.carry(source, destination, 0, 0.0, arrived.set, copy_context())
        await arrived.wait()

    def loses(self, source: str, destination: str) -> bool:
        """Whether what is sent now is dropped."""
        return self._cut.get((source, destination), False)

    def opened(self, end: WireEnd) -> None:
        self._ends[end] = None

    def closed(self, end: WireEnd) -> None:
        self._ends.pop(end, None)
