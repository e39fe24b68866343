"""Gives Spark paths without special characters. Owns the symbolic links that this takes; knows nothing about runs.

A run directory may have any name. But Java's properties, log4j, Hadoop's globs and Spark's lists of directories each
give some characters a special meaning (``,`` ``:`` ``$`` ``%`` ``[`` ``{`` ``*`` ``\\`` ``"``), or misread non-ASCII
characters. A directory with such a name gets a symbolic link with a plain name.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9/._+@= -]+")


class PlainPaths:
    """Symbolic links to directories; ``close`` removes them."""

    def __init__(self) -> None:
        self._home: Path | None = None
        self._links: dict[Path, Path] = {}

    def to(self, directory: Path) -> Path:
        """A plain path to this directory: its own path, or a link to it. Raises ``OSError``."""
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
        """Removes the links, but not the directories to which they lead."""
        home, self._home = self._home, None
        self._links.clear()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
