"""The seal of a run: what every file of its evidence was when the run ended. Owns taking and comparing it.

Once everything has stopped, the conductor writes ``seal.json``: size and SHA-256 of each file of the evidence, and the
digest of ``run.json`` without the fields that change later. Anyone who judges the run compares: a file that is missing,
changed or new is named. The seal is no secret: its own digest is in every verdict, so that a run whose verdict was
kept can be told from one that was sealed again. What a difference means for the verdict is not decided here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifier.evidence.bounded import size_of
from verifier.evidence.run_directory import RunDirectory, read_json, write_json_atomic

SCHEMA = 1

#: What a run writes after its evidence is complete: a verdict and its reports, and logs that continue meanwhile.
OUTPUTS = frozenset(
    {"run.json", "seal.json", "verdict.json", "report.html", "summary.md", "junit.xml", "verifier.log", "run.log",
     "live.json"}
)  # fmt: skip
OUTPUT_DIRECTORIES = frozenset({".verifier", ".judged", "anomalies"})
#: ZooKeeper's own files: it runs until everything else has stopped, and nothing is judged by them.
_OUTSIDE = ("nodes/zookeeper/",)
#: Where a file that appears later would be read as evidence.
_CLOSED = ("history/", "nodes/", "loadgen/")
#: Fields of ``run.json`` that are written after the seal.
LATER_FIELDS = ("ended", "exit_status", "judging")

#: Hashing releases the interpreter lock: two threads keep two cores busy.
THREADS = 2


@dataclass(frozen=True, slots=True)
class Seal:
    """``files``: size in bytes and SHA-256 by path within the run directory; ``run``: the digest of ``run.json``."""

    files: Mapping[str, tuple[int, str]]
    run: str

    @property
    def digest(self) -> str:
        """The digest of the seal itself."""
        return _digest({"files": {path: list(entry) for path, entry in self.files.items()}, "run": self.run})


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one file since the seal: ``missing``, ``changed`` or ``new``. ``path`` is as in the seal."""

    path: str
    what: str


def take(directory: RunDirectory) -> Seal:
    """Read all evidence of a run and write ``seal.json``. Raises ``OSError`` or ``ValueError``."""
    seal = Seal(_hashed(directory, sorted(_files(directory))), run_digest(directory.read_run()))
    plain = {"schema": SCHEMA, "algorithm": "sha256", "run": seal.run}
    plain |= {"files": {path: list(entry) for path, entry in seal.files.items()}}
    write_json_atomic(directory.seal_json, plain)
    return seal


def read(directory: RunDirectory) -> Seal:
    """The seal as it stands. Raises ``FileNotFoundError``, or ``ValueError`` for what is no seal."""
    plain = read_json(directory.seal_json)
    try:
        files = {str(path): (int(size), str(digest)) for path, (size, digest) in plain["files"].items()}
        if plain["schema"] != SCHEMA or plain["algorithm"] != "sha256":
            raise ValueError(f"schema {plain['schema']}, algorithm {plain['algorithm']}")
        return Seal(files, str(plain["run"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{directory.seal_json}: not a seal: {error!r}") from error


def compare(directory: RunDirectory, seal: Seal, below: str = "") -> list[Difference]:
    """Every file that is not what it was, by path; ``run.json`` among them. Raises ``OSError`` or ``ValueError``.

    ``below``: read no other files than those whose path begins so, and ``run.json``.
    """
    present = {path for path in _files(directory) if path.startswith(below)}
    sealed = {path for path in seal.files if path.startswith(below)}
    differences = [Difference(path, "missing") for path in sealed - present]
    differences += [Difference(path, "new") for path in present - sealed if path.startswith(_CLOSED)]
    same_size = [path for path in sorted(present & sealed) if _size(directory, path) == seal.files[path][0]]
    found = _hashed(directory, same_size)
    differences += [
        Difference(path, "changed") for path in present & sealed if path not in found or found[path] != seal.files[path]
    ]
    if run_digest(directory.read_run()) != seal.run:
        differences.append(Difference("run.json", "changed"))
    return sorted(differences, key=lambda difference: difference.path)


def run_digest(run: Mapping[str, Any]) -> str:
    """The digest of ``run.json`` without the fields that are written after the seal."""
    return _digest({name: value for name, value in run.items() if name not in LATER_FIELDS})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _files(directory: RunDirectory) -> set[str]:
    """All files of the evidence, by path within the run directory."""
    return set(_walk(directory.path, ""))


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_symlink() or not entry.is_dir():
            if path not in OUTPUTS and not entry.name.endswith(".tmp"):
                yield path
        elif path not in OUTPUT_DIRECTORIES and f"{path}/" not in _OUTSIDE:
            yield from _walk(entry, f"{path}/")


def _size(directory: RunDirectory, path: str) -> int:
    return (directory.path / path).stat().st_size


def _hashed(directory: RunDirectory, paths: list[str]) -> dict[str, tuple[int, str]]:
    def hashed(path: str) -> tuple[int, str]:
        size_of(directory.path / path)
        with (directory.path / path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest

    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(paths, pool.map(hashed, paths), strict=True))
