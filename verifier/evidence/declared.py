"""What a run says it will leave, before its load begins. Owns the shape; loadgen and chaos fill it in.

The verifier accounts for everything that stands here, and doubts what is there beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: ``producers``, ``readers`` and ``members`` (of consumer groups) are load processes; ``sentinel`` and ``final`` are
#: the programs of the final phase.
WriterRole = Literal["producers", "readers", "members", "sentinel", "final"]

#: The roles of load processes: each leaves a live series and a status, too.
LIVE: tuple[WriterRole, ...] = ("producers", "readers", "members")


@dataclass(frozen=True, slots=True)
class DeclaredProcess:
    """A process that must leave ``history/<name>.arrow``. It writes ``streams`` streams, from ``first_stream`` on."""

    name: str
    role: str
    client: str
    first_stream: int = -1
    streams: int = 0

    @property
    def child(self) -> str:
        """What ``run.json`` calls the process: ``final-native`` is the history of the program ``final-read-native``."""
        return self.name.replace("final-", "final-read-", 1) if self.role == "final" else self.name


@dataclass(frozen=True, slots=True)
class DeclaredEvidence:
    """What a run declares before it starts.

    ``replicas``: the brokers of each partition, by ``<topic>-<partition>``; ``planned_faults``: how many injections the
    schedule has, numbered from 0.
    """

    processes: list[DeclaredProcess]
    brokers: list[int]
    replicas: dict[str, list[int]]
    planned_faults: int

    @classmethod
    def nothing(cls) -> DeclaredEvidence:
        """What is declared before anything is known."""
        return cls([], [], {}, 0)

    def process(self, name: str) -> DeclaredProcess | None:
        """The declared process of that name."""
        return next((each for each in self.processes if each.name == name), None)

    def of_role(self, *roles: WriterRole) -> list[DeclaredProcess]:
        """The processes of these roles, in the order of their declaration."""
        return [each for each in self.processes if each.role in roles]

    @property
    def streams(self) -> Mapping[int, str]:
        """The process that writes each stream."""
        return {
            stream: process.name
            for process in self.processes
            for stream in range(process.first_stream, process.first_stream + process.streams)
        }
