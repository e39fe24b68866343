"""Planted removals: the correct rules without one of them, to show that the oracle would see it.

Owns the wrong logic, but for what golden scenarios are played without as well (``golden_removals``);
docs/reference/anomalies-and-bugs.md names the bugs. Each replaces what ``cluster.broker.rules`` bundles, lets single
methods do nothing, or puts another in the place of one; nothing in the cluster knows of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from unittest import mock

from cluster.broker.control.links.channels import BrokerChannel
from cluster.broker.replicas.follower_log import FollowerLog
from cluster.broker.replicas.roles import Roles
from cluster.broker.rules import Rules
from cluster.controller import leadership, partitions
from cluster.defects import parse, with_defects
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.epochs import LeaderEpochCache
from cluster.log.file_names import FileNames
from cluster.log.local_log import ReadResult
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, SequenceVerdict, VerdictKind
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import InSyncReplicas
from cluster.replication.leader import LeaderState
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.randomness import derive
from tests.simulation import golden_removals as without


@dataclass(frozen=True)
class Removal:
    """``rules`` takes one of the rules away; ``idle`` are functions (owner, name) that do nothing meanwhile, and
    ``patches`` are (owner, name, what stands there instead)."""

    rules: Callable[[Rules], Rules] = lambda rules: rules
    idle: tuple[tuple[object, str], ...] = ()
    patches: tuple[tuple[object, str, object], ...] = ()

    @contextlib.contextmanager
    def applied(self) -> Iterator[Rules]:
        """The rules of a cluster that lacks it."""
        with contextlib.ExitStack() as stack:
            for owner, name in self.idle:
                stack.enter_context(mock.patch.object(owner, name, return_value=None))
            for place, name, instead in self.patches:
                stack.enter_context(mock.patch.object(place, name, instead))
            yield self.rules(Rules())


def _the_same_length_is_the_same_log(_epochs: LeaderEpochCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
    return epoch, log_end_offset


def keep_the_tail(rules: Rules) -> Rules:
    """No epoch truncation: a follower is never told where it parted, and keeps what it has (KIP-101, KIP-279)."""
    return replace(rules, end_offset_for=_the_same_length_is_the_same_log)


def _cut_to_the_watermark(_latest_epoch: int | None, high_watermark: int, log_end_offset: int) -> int:
    return min(high_watermark, log_end_offset)


def cut_to_the_watermark(rules: Rules) -> Rules:
    """No epoch truncation, as before KIP-101: a follower begins with what it knows to be committed."""
    return replace(rules, initial_truncation=_cut_to_the_watermark)


def _acknowledge_at_once(leader: LeaderState | None, append_epoch: int, _required_offset: int) -> ErrorCode | None:
    if leader is None or append_epoch < leader.leading_since:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def acknowledge_early(rules: Rules) -> Rules:
    """A write is acknowledged when its leader has it, before the high watermark."""
    return replace(rules, acknowledgement=_acknowledge_at_once)


def forget_on_failover(rules: Rules) -> Rules:
    """A new leader knows no producer of before, and takes any first sequence of them, as Kafka does since KIP-360."""
    led: dict[PartitionLog, int] = {}
    forgot = False

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        nonlocal forgot
        if led.setdefault(log, 0) != leader_epoch:
            led[log] = leader_epoch
            log.producers.clear()
        forgot = leader_epoch > 0 and log.producers.get(header.producer_id) is None
        return rules.append(log, batch, header, leader_epoch, now_ms)

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        return rules.check_sequence(entry, header, log_start_offset, "kafka" if forgot else unknown)

    return replace(rules, append=append, check_sequence=check)


def _obey_anybody(*_arguments: int, **_known: int) -> ErrorCode:
    return ErrorCode.NONE


def no_controller_fencing(rules: Rules) -> Rules:
    """A deposed controller is obeyed, and overwrites what its successor wrote."""
    return replace(
        rules,
        control=replace(rules.control, control_request_error=_obey_anybody, required_version=lambda _known: None),
    )


def keep_the_log_start(rules: Rules) -> Rules:
    """A follower is not cut below its own log start."""
    return replace(rules, truncate=lambda log, offset: rules.truncate(log, max(offset, log.log_start_offset)))


def refuse_duplicates(rules: Rules) -> Rules:
    """A batch that was stored before is out of order (Redpanda issue 3039)."""

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        verdict = rules.check_sequence(entry, header, log_start_offset, unknown)
        if verdict.kind is VerdictKind.DUPLICATE:
            return SequenceVerdict(VerdictKind.REJECT, error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return verdict

    return replace(rules, check_sequence=check)


def shift_duplicates(rules: Rules) -> Rules:
    """A batch that was stored before is answered with an offset that is not its own (Redpanda issue 5355)."""

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        info = rules.append(log, batch, header, leader_epoch, now_ms)
        is_told = info.duplicate and info.first_offset >= 0
        return info._replace(first_offset=info.first_offset + 1) if is_told else info

    return replace(rules, append=append)


_read = PartitionLog.read


def _read_to_the_end(
    log: PartitionLog, offset: int, max_bytes: int, _upper_bound_offset: int, at_least_one: bool = True
) -> ReadResult:
    return _read(log, offset, max_bytes, log.log_end_offset, at_least_one)


def _defect(name: str) -> Removal:
    """What ``gapless run --defect`` plants in real brokers, taken from these."""

    def planted(rules: Rules) -> Rules:
        storage = MemoryStorage()
        storage.makedirs("/")
        return with_defects(rules, [parse(name)], derive(1, "defects"), Firings("", 0, storage, ManualClock()))

    return Removal(planted)


REMOVALS: dict[str, Removal] = {
    "keep-the-tail": Removal(keep_the_tail),
    "cut-to-the-watermark": Removal(cut_to_the_watermark),
    "acknowledge-early": Removal(acknowledge_early),
    "forget-on-failover": Removal(forget_on_failover),
    "no-controller-fencing": Removal(no_controller_fencing),
    # Its follower then also asks for what it lacks: without that rule it is as it was before both.
    "keep-the-log-start": Removal(keep_the_log_start, ((FollowerLog, "_lacks_what_is_below"),)),
    "forget-a-failed-role": Removal(idle=((Roles, "_failed"), (BrokerChannel, "_note_partition_errors"))),
    # After bugs of others: docs/reference/anomalies-and-bugs.md tells the issues, docs/reference/kafka.md the KIPs.
    "elect-anybody": Removal(without.elect_anybody),  # KAFKA-1555
    "refuse-duplicates": Removal(refuse_duplicates),  # Redpanda 3039
    "take-what-is-proposed": Removal(patches=((InSyncReplicas, "_propose", without.take_what_is_proposed),)),  # KIP-497
    "hand-over-to-anybody": Removal(patches=((partitions, "elect_controlled_shutdown", without.hand_over_to_anybody),)),
    "read-to-the-end": Removal(patches=((PartitionLog, "read", _read_to_the_end),)),  # KAFKA-9835
    "remember-one-batch": Removal(without.remember_one_batch),  # Redpanda 3077
    "take-gaps": Removal(without.take_gaps),  # KIP-98
    "shift-duplicates": Removal(shift_duplicates),  # Redpanda 5355
    "prefer-whoever-is-alive": Removal(
        patches=((leadership, "elect_preferred", without.prefer_whoever_is_alive),)
    ),  # KIP-460
    "leave-names-unsynced": Removal(patches=((FileNames, "unsynced_directories", lambda _names: ()),)),  # KAFKA-3968
    # Of transactions and groups.
    **{
        name: _defect(name)
        for name in (
            "end-whichever-is-open",
            "take-what-comes-late",
            "take-fenced-producers",
            "time-out-unfenced",
            "read-undecided",
            "name-no-aborted",
            "add-in-memory",
            "end-in-memory",
            "do-not-resume",
            "fetch-unstable-offsets",
            "commit-in-memory",
            "expire-by-commit-time",
            "refuse-above-the-watermark",
            "end-at-the-watermark",
            "end-one-later",
        )
    },
}
