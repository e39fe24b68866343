"""The ``transactional.id`` of each transactional producer of a load. Pure. Owns only the names.

Without rivals, each producer has its own id, which includes the name of its process. With rivals, several producers in
different processes share an id, which names no process.
"""

from __future__ import annotations

_SHARED = "shared"


def transactional_id(run_id: int, process: str, first_stream: int) -> str:
    """The id of the producer in this process whose first stream is ``first_stream``."""
    return f"gapless-{run_id}-{process}-{first_stream}"


def shared_id(run_id: int, producer: int, producers: int, rivals: int) -> str:
    """The id that a producer, by its number among all of the load, shares with its ``rivals`` - 1 rivals.

    Processes have producers with numbers in a row, so those who share an id are as far apart as can be.
    """
    return f"gapless-{run_id}-{_SHARED}-{producer % (producers // rivals)}"


def may_be_of(name: str, process: str) -> bool:
    """Whether a producer in this process may have this id."""
    parts = name.split("-", 2)
    whose = parts[2].rpartition("-")[0] if len(parts) == 3 and parts[0] == "gapless" else ""
    return whose in (process, _SHARED)
