"""The tools that all parts of a run share: clock, storage, transport, supervisor, run directory and progress.

Owns only the value. The command line creates it.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.conductor.progress import Progress
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from cluster.seams.transport import Transport
from verifier.evidence.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Workbench:
    """The tools of one run."""

    clock: Clock
    storage: Storage
    transport: Transport
    supervisor: Supervisor
    directory: RunDirectory
    progress: Progress
