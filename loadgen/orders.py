"""Orders to members of a group while the load runs: to end their current life. Owns the form of orders, and their file.

A fault that must hit some members of a load process, and not the whole process, gives orders. They are lines of a file
in the run directory, one file for each process, so that they are evidence, too. Does not own how a member obeys
(``loadgen.users.member``), or which orders are given (``chaos.faults``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loadgen.group_plan import LifeEnd
from verifier.evidence.run_directory import append_json_line, read_json_lines


@dataclass(frozen=True, slots=True)
class MemberOrder:
    """An order to the member in a place: its life ends in this way, and the place is empty for ``absence_s`` seconds.

    ``number`` is higher than that of every earlier order. Members that take the place later have it in their names.
    """

    number: int
    place: int
    end: LifeEnd
    absence_s: float


def give_orders(path: Path, orders: Iterable[MemberOrder]) -> None:
    """Append orders to the file that a process reads. Raises ``OSError``."""
    for each in orders:
        line = {"number": each.number, "place": each.place, "end": each.end.value, "absence_s": each.absence_s}
        append_json_line(path, line)


class OrderBook:
    """The orders of one process, from which its members take theirs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size_bytes = 0
        self._read = 0
        #: The newest order of each place.
        self._open: dict[int, MemberOrder] = {}

    def __repr__(self) -> str:
        return f"OrderBook({self._path.name}, {self._read} read, open: {sorted(self._open)})"

    def take(self, place: int) -> MemberOrder | None:
        """The newest order for this place, returned once; None without one. Raises ``OSError`` or ``ValueError``."""
        self._look()
        return self._open.pop(place, None)

    def _look(self) -> None:
        """Read new lines. A line that is still being written is read when it is complete."""
        try:
            size_bytes = os.stat(self._path).st_size
        except FileNotFoundError:
            return
        if size_bytes == self._size_bytes:
            return
        lines = list(read_json_lines(self._path))
        for line in lines[self._read :]:
            order = MemberOrder(line["number"], line["place"], LifeEnd(line["end"]), line["absence_s"])
            self._open[order.place] = order
        self._read, self._size_bytes = len(lines), size_bytes
