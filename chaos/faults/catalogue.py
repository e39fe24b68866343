"""The list of faults, and the sets of faults that have a name. Does not own what a fault does: its class does."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from chaos.faults.add_partitions import AddPartitions
from chaos.faults.alter_config import AlterConfig
from chaos.faults.bandwidth import Bandwidth
from chaos.faults.base import Fault
from chaos.faults.bit_flip import BitFlip
from chaos.faults.bridge import Bridge
from chaos.faults.clock_drift import ClockDrift
from chaos.faults.clock_jump import ClockJump
from chaos.faults.close_on import CloseOn
from chaos.faults.crash_members import CrashMembers
from chaos.faults.create_delete_topic import CreateDeleteTopic
from chaos.faults.cut_frame import CutFrame
from chaos.faults.cut_link import CutLink
from chaos.faults.delay_end_txn import DelayEndTxn
from chaos.faults.delay_markers import DelayMarkers
from chaos.faults.delay_request import DelayRequest
from chaos.faults.disk_error import DiskError
from chaos.faults.double_failover import DoubleFailover
from chaos.faults.drop_end_txn_response import DropEndTxnResponse
from chaos.faults.drop_packets import DropPackets
from chaos.faults.drop_response import DropResponse
from chaos.faults.duplicate_request import DuplicateRequest
from chaos.faults.elect_preferred import ElectPreferred
from chaos.faults.elect_unclean import ElectUnclean
from chaos.faults.expire_session import ExpireSession
from chaos.faults.flapping import Flapping
from chaos.faults.full_disk import FullDisk
from chaos.faults.halves import Halves
from chaos.faults.hold_markers import HoldMarkers
from chaos.faults.isolate_broker import IsolateBroker
from chaos.faults.jitter import Jitter
from chaos.faults.kill_all import KillAll
from chaos.faults.kill_and_wipe import KillAndWipe
from chaos.faults.kill_controller import KillController
from chaos.faults.kill_follower import KillFollower
from chaos.faults.kill_group_coordinator import KillGroupCoordinator
from chaos.faults.kill_leader import KillLeader
from chaos.faults.kill_majority import KillMajority
from chaos.faults.kill_producers import KillProducers
from chaos.faults.kill_readers import KillReaders
from chaos.faults.kill_transaction_coordinator import KillTransactionCoordinator
from chaos.faults.leader_with_clients import LeaderWithClients
from chaos.faults.leader_with_followers import LeaderWithFollowers
from chaos.faults.lose_checkpoint import LoseCheckpoint
from chaos.faults.lose_index import LoseIndex
from chaos.faults.memory_pressure import MemoryPressure
from chaos.faults.pause_group_coordinator import PauseGroupCoordinator
from chaos.faults.pause_leader import PauseLeader
from chaos.faults.pause_members import PauseMembers
from chaos.faults.pause_producers import PauseProducers
from chaos.faults.pause_transaction_coordinator import PauseTransactionCoordinator
from chaos.faults.pause_zookeeper import PauseZookeeper
from chaos.faults.power_loss import PowerLoss
from chaos.faults.reassign_partitions import ReassignPartitions
from chaos.faults.refuse import Refuse
from chaos.faults.repeat_end_txn import RepeatEndTxn
from chaos.faults.reset import Reset
from chaos.faults.restart_members import RestartMembers
from chaos.faults.restart_storm import RestartStorm
from chaos.faults.restart_zookeeper import RestartZookeeper
from chaos.faults.ring import Ring
from chaos.faults.rolling_restart import RollingRestart
from chaos.faults.slicer import Slicer
from chaos.faults.slow_close import SlowClose
from chaos.faults.slow_disk import SlowDisk
from chaos.faults.slow_link import SlowLink
from chaos.faults.starve_cpu import StarveCpu
from chaos.faults.truncate_tail import TruncateTail
from chaos.faults.zookeeper_from_one import ZookeeperFromOne

_BASIC = (KillLeader, PauseLeader, CutLink, IsolateBroker, DropResponse, KillController, DropPackets)
_MORE = (KillFollower, Reset, SlowLink, PauseZookeeper, RestartZookeeper, RollingRestart, ExpireSession, StarveCpu)
#: Network partitions.
_PARTITIONS = (Halves, Bridge, Ring, LeaderWithClients, LeaderWithFollowers, ZookeeperFromOne)
#: Links that are slow, or that refuse or close connections.
_ON_LINKS = (Jitter, Bandwidth, Slicer, Refuse, Flapping, SlowClose)
#: On single frames of Kafka's protocol, by their API.
_ON_REQUESTS = (DelayRequest, DuplicateRequest, CutFrame, CloseOn)
#: On more than one broker, or on all data of one.
_STORMS = (KillAll, KillMajority, KillAndWipe, RestartStorm, DoubleFailover)
#: Orders to the cluster, such as an operator gives.
_BY_ORDER = (ReassignPartitions, ElectPreferred, ElectUnclean, AddPartitions, AlterConfig, CreateDeleteTopic)
#: On coordinators; only with loads that have transactions or groups.
_ON_COORDINATORS = (
    *(KillTransactionCoordinator, PauseTransactionCoordinator, KillGroupCoordinator, PauseGroupCoordinator),
    *(DelayEndTxn, RepeatEndTxn, DropEndTxnResponse, HoldMarkers, DelayMarkers),
)
#: On clients; only with loads that have transactional producers or groups.
_ON_LOADS = (PauseProducers, PauseMembers, CrashMembers, RestartMembers)
#: On processes of any load; there must be two.
_ON_PROCESSES = (KillProducers, KillReaders)
#: On the machine of one broker: its disk, its clock and its memory.
_ON_MACHINES = (
    *(PowerLoss, TruncateTail, FullDisk, DiskError, SlowDisk, LoseCheckpoint, LoseIndex, BitFlip),
    *(ClockJump, ClockDrift, MemoryPressure),
)

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        *(*_BASIC, *_MORE, *_PARTITIONS, *_ON_LINKS, *_ON_REQUESTS, *_STORMS, *_BY_ORDER),
        *(*_ON_COORDINATORS, *_ON_LOADS, *_ON_PROCESSES, *_ON_MACHINES),
    )
}

#: The set of faults that a run has by default. It fits into the default minute of load.
DEFAULT = "basic"
#: The names that mean several faults.
GROUPS = {
    "none": (),
    "all": tuple(name for name, fault in FAULTS.items() if not fault.by_name_alone),
    DEFAULT: tuple(fault.name for fault in _BASIC),
}


class UnknownFault(ValueError):
    """A fault that is not in the catalogue. The message suggests the nearest name."""


def parse_faults(text: str) -> tuple[str, ...]:
    """The names of the faults in ``a,b``, or of the set ``basic``, ``all`` or ``none``. Raises UnknownFault."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UnknownFault(f"{text!r} names no fault; use 'none' for a run without faults")
    if len(names) == 1 and names[0] in GROUPS:
        return GROUPS[names[0]]
    if together := [name for name in names if name in GROUPS]:
        raise UnknownFault(
            f"{together[0]!r} is a set of faults; give it alone, or give a comma-separated list of faults"
        )
    check_faults(names)
    return tuple(dict.fromkeys(names))


def check_faults(names: Sequence[str]) -> None:
    """Raises UnknownFault for the first name that is not in the catalogue."""
    for name in names:
        if name not in FAULTS:
            near = difflib.get_close_matches(name, FAULTS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "'gapless list faults' shows all"
            raise UnknownFault(f"unknown fault {name!r}; {hint}")
