"""The ``gapless dump`` commands that show a place of the log in each replica's own files. Owns their form. Pure."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from verifier.surroundings.model import SpotView

#: The most commands for one place, over all its replicas.
MOST = 6


def program(repro: str) -> str:
    """The command that started gapless for this run, quoted for a shell: the first word of ``repro``."""
    try:
        first = next(iter(shlex.split(repro)), "")
    except ValueError:
        first = ""
    return shlex.quote(first) if PurePath(first).name == "gapless" else "gapless"


def dump_commands(place: SpotView, directory: str, called: str) -> list[str]:
    """A command for each file that has batches around the place. The leader's files come first."""
    first, last = place.spot.windows[0][0], place.spot.windows[-1][1]
    files = dict.fromkeys(batch.file for stored in place.stored for batch in stored.batches)
    return [
        f"{called} dump --records --offsets {first}..{last} {shlex.quote(str(PurePath(directory, file)))}"
        for file in list(files)[:MOST]
    ]
