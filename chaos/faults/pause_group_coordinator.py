"""``pause-group-coordinator``: SIGSTOP the coordinator of a group at a JoinGroup, a SyncGroup or an OffsetCommit."""

from __future__ import annotations

from chaos.faults.accepted import one_of
from chaos.faults.pause_coordinator import PauseCoordinator
from chaos.faults.steps import STEPS


class PauseGroupCoordinator(PauseCoordinator):
    """When it wakes up, it finds a commit or a member for which its successor is responsible by then."""

    name = "pause-group-coordinator"
    summary = "SIGSTOP the coordinator of a group at a JoinGroup, SyncGroup or OffsetCommit; SIGCONT it"
    coordinates = "group"
    needs_coordinator = "group"
    accepts = (one_of("step", *STEPS["group"]),)
    targets = ("partition", "group")
