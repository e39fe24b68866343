"""What gapless writes about a run into the directory it was given, and the refusal of what is in the way there.

A run that someone sent may hold a link where a verifier writes or removes: it would do so wherever the link leads. So a
directory in which one of these names is a link, or anything but a file or a directory, is refused before anything in
it is touched. Owns the names and the refusal; what is only read is not checked here (``verifier.evidence.bounded``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

#: Spark's own files while it works, inside the run directory so that nothing is left elsewhere; removed at the end.
SCRATCH = ".verifier"
#: Where the new files lie until all of them are there, inside the run directory: a rename must not cross file systems.
BESIDE = ".judged"

FILES = ("verdict.json", "report.html", "summary.md", "junit.xml", "verifier.log", "warden.log")
DIRECTORIES = (SCRATCH, BESIDE, "anomalies")


class InTheWay(OSError):
    """Something stands where a result belongs; the message is one line that names it."""


def check_outputs(directory: Path, files: Sequence[str] = FILES, directories: Sequence[str] = DIRECTORIES) -> None:
    """Raise ``InTheWay`` unless each of these is absent or what it is to be: a file, a directory. ``OSError`` also."""
    for names, is_right, wanted in ((files, stat.S_ISREG, "file"), (directories, stat.S_ISDIR, "directory")):
        for name in names:
            path = directory / name
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(mode):
                raise InTheWay(f"{path} is a symbolic link, and nothing is written through one: remove it")
            if not is_right(mode):
                raise InTheWay(f"{path} is not a {wanted}, as which it is to be written: remove it")


def check_tree(directory: Path) -> None:
    """Raise ``InTheWay`` if anything below is neither a directory, a file nor a socket. ``OSError`` also."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise InTheWay(f"{entry.path} is a symbolic link, and nothing is written through one: remove it")
            if entry.is_dir(follow_symlinks=False):
                check_tree(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False) and not stat.S_ISSOCK(entry.stat().st_mode):
                raise InTheWay(f"{entry.path} is not a file: remove it")
