"""Invariants of a partition's leadership.

They hold whenever no method of ``LeaderState`` is running and ``advance`` was called for the given log end, as its
owner does after each append. ``validate`` checks:

* ``leader-in-isr``: the leader is in its own ISR.
* ``isr-of-replicas``: the members of the ISR are replicas.
* ``isr-maximal``: the ISR that the high watermark waits for is the committed ISR together with the change in flight,
  which was proposed in this leader epoch and partition epoch.
* ``follower-within``: no follower is known to have more than the leader: a follower's end <= the log end.
* ``watermark-within``: high watermark <= log end, and <= the end of every ISR member that has fetched in this epoch.
  The exception is a member that the change in flight removes: it may have returned with less, because the controller
  may already have agreed.
* ``watermark-reached``: while enough replicas are in sync, everything that the leader and all followers have is below
  the high watermark, that is, it is at or above the lowest of their ends. (It may be above it, since replicas that are
  not in sync do not count.)
* ``leader-epochs``: leading since <= leader epoch, which is also that of the ISR; the epoch's start <= log end; 1 <=
  effective ``min.insync.replicas`` <= number of replicas.
"""

from __future__ import annotations

from cluster.invariants import InvariantBroken
from cluster.replication.leader import LeaderState


def validate(leader: LeaderState, log_end_offset: int) -> None:
    """The leadership of a log that ends at ``log_end_offset``. Raises ``InvariantBroken``."""
    _validate_isr(leader)
    high_watermark, followers = leader.high_watermark, leader.followers
    if high_watermark > log_end_offset:
        raise InvariantBroken(leader, "watermark-within", f"{high_watermark}, log end {log_end_offset}")
    committed, pending = leader.isr.committed, leader.isr.pending
    staying = committed if pending is None else committed.intersection(pending.members)
    least = log_end_offset
    for replica_id, follower in followers.items():
        end_offset = follower.log_end_offset
        least = min(least, end_offset)
        if end_offset > log_end_offset:
            values = f"follower {replica_id} ends at {end_offset}, the leader at {log_end_offset}"
            raise InvariantBroken(leader, "follower-within", values)
        if 0 <= end_offset < high_watermark and replica_id in staying:
            values = f"{high_watermark}, replica {replica_id} of the ISR ends at {end_offset}"
            raise InvariantBroken(leader, "watermark-within", values)
    if leader.has_enough_in_sync and high_watermark < least:
        values = f"{high_watermark}, although all {1 + len(followers)} replicas hold what is below {least}"
        raise InvariantBroken(leader, "watermark-reached", values)
    is_led = leader.leading_since <= leader.leader_epoch == leader.isr.leader_epoch
    is_asked = 1 <= leader.min_insync_replicas <= len(followers) + 1
    if not (is_led and is_asked and leader.epoch_start_offset <= log_end_offset):
        values = (
            f"leading in {leader.leader_epoch} since {leader.leading_since}, isr of {leader.isr.leader_epoch}, from "
            f"offset {leader.epoch_start_offset} of {log_end_offset}, {leader.min_insync_replicas} of "
            f"{len(followers) + 1} replicas wanted in sync"
        )
        raise InvariantBroken(leader, "leader-epochs", values)


def _validate_isr(leader: LeaderState) -> None:
    isr = leader.isr
    committed, pending = isr.committed, isr.pending
    if leader.broker_id not in committed:
        raise InvariantBroken(leader, "leader-in-isr", f"{leader.broker_id} in {sorted(committed)}")
    strangers = [each for each in isr.maximal if each != leader.broker_id and each not in leader.followers]
    if strangers:
        replicas = sorted((leader.broker_id, *leader.followers))
        raise InvariantBroken(leader, "isr-of-replicas", f"{sorted(strangers)} of {replicas}")
    expected = committed if pending is None else committed.union(pending.members)
    is_current = pending is None or (pending.leader_epoch, pending.partition_epoch) == (
        isr.leader_epoch,
        isr.partition_epoch,
    )
    if isr.maximal != expected or not is_current:
        raise InvariantBroken(leader, "isr-maximal", f"{sorted(isr.maximal)}, in flight is {pending}")
