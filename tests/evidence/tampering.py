"""Tamper with one piece of a run's evidence: a file, a line, a row, a field or a byte of it. Drawn by a seed.

What there is to draw from is ``tests.evidence.kinds``'s. Nothing here knows what the verifier makes of it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.evidence.kinds import KINDS, SWAP_FILES, Cell, Kind
from tests.evidence.whole import swap_with


class Tampering(NamedTuple):
    """What was done to which file, by its path within the run directory; to what kind of file, and of what kind."""

    path: str
    how: str
    kind: str = ""
    cell: Cell = ("", "")


def tamper(run: Path, seed: int) -> Tampering:
    """Tamper with one thing of this copy; the same seed does the same to the same run."""
    random = Random(seed)
    present = [kind for kind in KINDS if kind.paths(run)]
    while True:
        kind = random.choices(present, [each.weight for each in present])[0]
        done = tamper_with(run, kind, random.choice(sorted(kind.ways)), random)
        if done is not None:
            return done


def tamper_with(run: Path, kind: Kind, cell: Cell, random: Random) -> Tampering | None:
    """Tamper with a file of this kind, in this way; None if the file that was drawn has nothing of the sort."""
    found = kind.paths(run)
    if not found:
        return None
    path = random.choice(found)
    if cell == SWAP_FILES:
        how = swap_with(path, found, random) or swap_with(path, _neighbors(path), random)
    else:
        how = random.choice(kind.ways[cell])(path, random)
    return None if how is None else Tampering(str(path.relative_to(run)), how, kind.name, cell)


def _neighbors(path: Path) -> list[Path]:
    """What a file may be taken for that has no other of its kind."""
    return sorted(each for each in path.parent.iterdir() if each.is_file())
