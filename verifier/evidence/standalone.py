"""What a standalone load leaves beside its histories: how each of its processes began, and how it was read back.

Owns the content of both files, below ``loadgen/``. The load writes them, and the verifier judges by them. A run of the
conductor's has ``run.json`` instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from verifier.evidence.run_directory import RunDirectory, read_json, write_json_atomic
from verifier.evidence.run_model import Model, RunModelError

_START = ".load.json"


class ByHandError(ValueError):
    """A file of a standalone load is not as the load left it; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStart(Model):
    """One process of a load, as it began. ``workers`` is how many Locust's master had; None without a master.

    ``ends`` is where each partition's log ended: what this load wrote is there or behind. ``topic_config`` is what
    the cluster said about its topic, and empty if it did not say.
    """

    process: str
    machine: str
    workers: int | None
    run_id: int
    topic: str
    client: str
    acks: str
    idempotence: bool
    ends: dict[int, int]
    topic_config: dict[str, str]

    def write(self, run: RunDirectory) -> None:
        """Leave it in the run. Raises ``OSError``."""
        write_json_atomic(run.loadgen_dir / f"{self.process}{_START}", self.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack(Model):
    """How a load was read back after its end. ``why`` says what kept it from being complete; "" if nothing did.

    ``after`` are the processes whose histories had ended before it began. Each partition was read from ``begins`` on,
    through the offset of a record that was written and acknowledged after the load.
    """

    why: str
    after: tuple[str, ...]
    begins: dict[int, int]

    def write(self, run: RunDirectory) -> None:
        """Leave it in the run. Raises ``OSError``."""
        write_json_atomic(run.read_back_json, self.to_json())


def is_load_by_hand(run: RunDirectory) -> bool:
    """Whether a directory has what such a load leaves, and a run does not."""
    return not run.run_json.exists() and any(run.loadgen_dir.glob(f"*{_START}"))


def never_began(run: RunDirectory) -> bool:
    """Whether a directory has what such a load makes first, and nothing in it: no cluster had responded."""
    is_made = run.history_dir.is_dir() and run.loadgen_dir.is_dir()
    return is_made and all(each.is_dir() and not each.is_symlink() for each in run.path.rglob("*"))


def read_starts(run: RunDirectory) -> tuple[LoadStart, ...]:
    """All processes of a load, by name. Raises ``ByHandError`` for a damaged file, ``OSError``."""
    starts = []
    for path in sorted(run.loadgen_dir.glob(f"*{_START}")):
        try:
            starts.append(LoadStart.from_json(read_json(path)))
        except ValueError as error:
            raise ByHandError(_damaged(f"loadgen/{path.name}", error)) from error
    return tuple(starts)


def read_read_back(run: RunDirectory) -> ReadBack | None:
    """How the load was read back; None if it was not. Raises ``ByHandError`` for a damaged file, ``OSError``."""
    if not run.read_back_json.exists():
        return None
    try:
        return ReadBack.from_json(read_json(run.read_back_json))
    except ValueError as error:
        raise ByHandError(_damaged(f"loadgen/{run.read_back_json.name}", error)) from error


def _damaged(name: str, error: ValueError) -> str:
    """``error`` is a ``RunModelError``, which blames the only file that it knows, or one of JSON's."""
    why = str(error).removeprefix("run.json: ") if isinstance(error, RunModelError) else str(error)
    return f"{name} is not as the load left it: {why}"
