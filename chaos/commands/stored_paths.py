"""What a path on the command line is: a run directory, or a history of operations. Owns the refusal of what is neither.

A refusal is one line that names the path, what it is instead, and what to name. Nothing is judged here.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from chaos.commands.history_head import complaint
from chaos.commands.up_nodes import NODES
from chaos.exits import BadRequest
from cluster.process.one_line import printable, reason
from verifier.evidence.run_directory import LATEST, RunDirectory
from verifier.evidence.run_model import OtherVersion, RunModel, RunModelError
from verifier.evidence.standalone import is_load_by_hand, never_began

#: The suffixes of a history of operations, and its name in a directory of a Jepsen store.
HISTORIES = (".edn", ".jsonl", ".json")
STORE_FILE = "history.edn"
#: The suffixes of archives in which a run may be sent.
ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.zst", ".zip")
#: How many levels below its run a file may be: nodes/1/data/topic-0/*.log.
_DEEPEST = 5
A_RUN = "a run directory, for example results/latest"
A_RUN_OR_HISTORY = (
    "a run directory (results/latest), a standalone load (results/locust/...) or a history "
    f"({', '.join(HISTORIES)}, or a directory with {STORE_FILE})"
)
#: The run that is used if none is named.
LATEST_RUN = Path("results") / LATEST
#: Why such a load has no verdict. Its directory may be one of several, and the others are judged.
NEVER_BEGAN = "the load never began, so that there is nothing to judge: no cluster had responded when it ended"
#: How many bytes of a file are examined to see whether it has operations at all.
HEAD_BYTES = 65_536


class DamagedRun(BadRequest):
    """A run directory whose ``run.json`` was removed, or is not as the run left it."""


@dataclass(frozen=True, slots=True)
class StoredPath:
    """A path as given, and what it is: a run directory, the file of a history, or a standalone load.

    For a damaged run, or a load that never began, says what is wrong.
    """

    given: Path
    run: RunDirectory | None
    history: Path | None
    damage: str | None = None
    load: RunDirectory | None = None


def stored(path: Path) -> StoredPath:
    """What this path is. Raises BadRequest if it is neither a run, not even a damaged one, nor a history."""
    if path.is_file() and path.suffix in HISTORIES:
        _check_history(path)
        return StoredPath(path, None, path)
    if path.is_dir() and not (path / "run.json").exists() and (path / STORE_FILE).is_file():
        return StoredPath(path, None, path / STORE_FILE)
    if is_load_by_hand(load := RunDirectory(path)):
        return StoredPath(path, None, None, load=load)
    if never_began(load):
        return StoredPath(path, None, None, NEVER_BEGAN)
    try:
        return StoredPath(path, run_directory(path, A_RUN_OR_HISTORY), None)
    except DamagedRun as error:
        return StoredPath(path, None, None, str(error))


def latest_run(wanted: str = A_RUN, *, quiet: bool = False) -> Path:
    """The resolved path of the newest run; prints it on stderr unless ``quiet``. Raises BadRequest without one."""
    if not LATEST_RUN.exists():
        raise BadRequest(
            f"no run is given, and there is no {LATEST_RUN}; name {wanted}, or create one with 'gapless run'"
        )
    try:
        path = LATEST_RUN.resolve().relative_to(Path.cwd())
    except ValueError:
        path = LATEST_RUN.resolve()
    if not quiet:
        print(printable(f"gapless: {LATEST_RUN} is {path}"), file=sys.stderr)
    return path


def run_directory(path: Path, wanted: str = A_RUN) -> RunDirectory:
    """The run directory at a path, whose ``run.json`` can be read. Raises BadRequest, which says what is ``wanted``.

    For a run whose ``run.json`` is damaged that is a DamagedRun.
    """
    try:
        directory = RunDirectory(path.resolve())
    except RuntimeError as error:  # a symbolic link that leads back to itself
        raise BadRequest(f"{path} is a symbolic link that leads back to itself; name {wanted}") from error
    if not directory.run_json.exists() and (path / NODES).is_file():
        raise BadRequest(
            f"{path} is the data of 'gapless up', not a run; 'gapless run --target' judges its cluster "
            f"(docs/up.md): name {wanted}"
        )
    if not directory.run_json.exists() and _was_a_run(directory):
        raise DamagedRun(f"{path}/run.json was removed; the rest of a run is there: restore the original")
    if not directory.run_json.is_file():
        raise BadRequest(_not_a_run(path, wanted))
    try:
        RunModel.from_json(directory.read_run())
    except OtherVersion as error:
        raise BadRequest(f"{path}/{error}") from error
    except RunModelError as error:
        raise DamagedRun(f"{path}/{error}; the file is not as the run left it: restore the original") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise DamagedRun(
            f"{path}/run.json: not valid JSON ({place}), so the file is not as the run left it: restore the original"
        ) from error
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a JSON object in UTF-8"
        raise DamagedRun(f"{path}/run.json cannot be read: {why}; restore the original") from error
    return directory


def _was_a_run(directory: RunDirectory) -> bool:
    """Whether a directory has files that only a run leaves."""
    nodes = directory.nodes_dir
    # a standalone load creates the nodes directory, too, but leaves it empty
    return directory.seal_json.is_file() or (directory.history_dir.is_dir() and nodes.is_dir() and any(nodes.iterdir()))


def _not_a_run(path: Path, wanted: str) -> str:
    if path.is_symlink() and not path.exists():
        return f"{path} points to {os.readlink(path)}, which is gone; name {wanted}"
    if not path.exists():
        return f"{path}: there is no such file or directory; name {wanted}"
    if path.name.endswith(ARCHIVES):
        return f"{path} is an archive: unpack it, and name the directory that it held"
    if not path.is_dir():
        return f"{path} is a file, not a run directory{_belongs(path)}; name {wanted}"
    if (path / "sweep.json").is_file():
        return f"{path} is a sweep's directory, not a run directory; its runs are in {path / 'cells'}"
    within = [each.parent for pattern in ("*/run.json", "*/*/run.json") for each in path.glob(pattern)]
    if within:
        newest = max(within, key=lambda each: (each / "run.json").stat().st_mtime)
        return f"{path} is not a run directory: it has no run.json; it holds runs, the newest is {newest}"
    return f"{path} is not a run directory: it has no run.json; name {wanted}"


def _belongs(path: Path) -> str:
    """The hint for a file of a run; "" for any other."""
    run = next((each for each in [*path.parents][:_DEEPEST] if (each / "run.json").is_file()), None)
    return "" if run is None else f" but part of one: {run}"


def _check_history(path: Path) -> None:
    """Raises BadRequest if the beginning of a file shows that it is not a history, or not in the format of its name."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode(errors="replace")
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {reason(error)}") from error
    wrong = complaint(head, path.suffix)
    if wrong is not None:
        raise BadRequest(f"{path} is not a history of operations: {wrong}{_belongs(path)}; name {A_RUN_OR_HISTORY}")
