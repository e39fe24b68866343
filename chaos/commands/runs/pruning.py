"""Decides which runs may be removed, and removes them. Owns the rules: only finished runs of gapless, never the latest.

Removes a directory under the lock that a verifier takes, so that no run is removed while it is judged.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from chaos.commands.runs.found import RunRow
from verifier.evidence.run_directory import LATEST

#: Everything that a run of any kind leaves in its directory (results/README.md). If there is anything else, a user has
#: put it there. tests/architecture/test_run_files.py finds what the code writes, so that no name is missing here.
OF_A_RUN = (
    *("summary.md", "report.html", "verdict.json", "junit.xml", "anomalies", "run.json", "seal.json", "schedule.yaml"),
    *("faults.jsonl", "leaders.jsonl", "resources.jsonl", "history", "nodes", "loadgen", "live.json", "run.log"),
    *("proxy.log", "relays.log", "verifier.log", "warden.log", "processes.json", "reached.json"),
    *("stable_offsets.jsonl", ".*"),
)


def to_remove(rows: Sequence[RunRow], base: Path, keep: int) -> Iterator[tuple[RunRow, str | None]]:
    """The runs beyond the ``keep`` newest finished ones, each with why it stays anyway, None if it may go.

    Runs that are not finished do not count, and are not named.
    """
    latest = (base / LATEST).resolve()
    finished = [row for row in rows if row.is_finished]
    for row in finished[keep:]:
        yield row, _why_kept(row, base, latest)


def _why_kept(row: RunRow, base: Path, latest: Path) -> str | None:
    if not row.has_our_name or row.path.parent.parent != base:
        return "it is not named as a run in results/NAME is"
    if row.path.resolve() == latest:
        return f"{LATEST} points to it"
    names = sorted(path.name for path in row.path.iterdir())
    if strange := [name for name in names if not any(fnmatchcase(name, each) for each in OF_A_RUN)]:
        return f"it holds what no run leaves: {', '.join(strange[:3])}{' ...' * (len(strange) > 3)}"
    return None


def remove(path: Path) -> None:
    """Remove one run directory, and its parent if that is empty then. Raises ``OSError``, also while it is judged."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    except BlockingIOError:
        raise OSError(f"{path}: a verifier judges it now") from None
    finally:
        os.close(descriptor)
    if not any(path.parent.iterdir()):
        path.parent.rmdir()
