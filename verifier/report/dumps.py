"""The commands that show a place of the log in each replica's own file. Pure. Owns their form."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from verifier.surroundings.model import SpotView

#: Files of one place, over all its replicas.
MOST = 6


def program(repro: str) -> str:
    """How gapless was called when the run was made: the first word of its ``repro``, for a shell."""
    try:
        first = next(iter(shlex.split(repro)), "")
    except ValueError:
        first = ""
    return shlex.quote(first) if PurePath(first).name == "gapless" else "gapless"


def dump_commands(place: SpotView, directory: str, called: str) -> list[str]:
    """A command for each file that holds anything around the place, the leader's first."""
    first, last = place.spot.windows[0][0], place.spot.windows[-1][1]
    files = dict.fromkeys(batch.file for stored in place.stored for batch in stored.batches)
    return [
        f"{called} dump --records --offsets {first}..{last} {shlex.quote(str(PurePath(directory, file)))}"
        for file in list(files)[:MOST]
    ]
