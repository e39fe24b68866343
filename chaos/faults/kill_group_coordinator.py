"""``kill-group-coordinator``: SIGKILL the coordinator of a group at a JoinGroup, a SyncGroup or an OffsetCommit."""

from __future__ import annotations

from chaos.faults.accepted import one_of
from chaos.faults.kill_coordinator import KillCoordinator
from chaos.faults.steps import STEPS


class KillGroupCoordinator(KillCoordinator):
    """Members must find the next one, which must know what was committed."""

    name = "kill-group-coordinator"
    summary = "SIGKILL the coordinator of a group at a JoinGroup, SyncGroup or OffsetCommit; restart it"
    coordinates = "group"
    needs_coordinator = "group"
    accepts = (one_of("step", *STEPS["group"]),)
    targets = ("partition", "group")
