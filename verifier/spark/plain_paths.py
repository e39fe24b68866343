"""Paths that Spark takes literally. Owns the symbolic links that replace other paths; knows nothing of runs.

A run directory may have any name. Java's properties, log4j, Hadoop's globs and Spark's lists of directories each give
some characters a meaning of their own (``,`` ``:`` ``$`` ``%`` ``[`` ``{`` ``*`` ``\\`` ``"``), or misread what is not
ASCII. A directory with such a name gets a link with a plain one.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9/._+@= -]+")


class PlainPaths:
    """Links to directories, until ``close``."""

    def __init__(self) -> None:
        self._home: Path | None = None
        self._links: dict[Path, Path] = {}

    def to(self, directory: Path) -> Path:
        """This directory by a plain name: its own, or a link to it. Raises ``OSError``."""
        directory = directory.absolute()
        if _PLAIN.fullmatch(str(directory)):
            return directory
        if directory not in self._links:
            if self._home is None:
                temporary = tempfile.gettempdir()
                self._home = Path(
                    tempfile.mkdtemp(prefix="gapless-", dir=temporary if _PLAIN.fullmatch(temporary) else "/tmp")
                )
            link = self._home / str(len(self._links))
            os.symlink(directory, link)
            self._links[directory] = link
        return self._links[directory]

    def close(self) -> None:
        """Remove the links, not the directories behind them."""
        home, self._home = self._home, None
        self._links.clear()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
