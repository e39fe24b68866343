"""What a run works with: the seams, the processes and the places. A value; made by the command line."""

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
    """Shared by all parts of a run."""

    clock: Clock
    storage: Storage
    transport: Transport
    supervisor: Supervisor
    directory: RunDirectory
    progress: Progress
