"""Invariants of one replica: where replication and the log meet, and what a follower has told its leader.

They hold whenever no method of the replica or its fetcher is running, unless the log's disk has failed.
``validate`` checks:

* ``watermark-in-log``: log start <= high watermark <= log end.
* ``role-of-leader``: a leader has the leader epoch, the partition epoch and the leader id of its leadership. The newest
  epoch of its log is that leader epoch, and it starts where the leadership began (or at the log start, if that is
  later).
* ``role-of-follower``: a follower does not follow itself, and its log has no epoch above the one in which it follows.

``validate_following`` checks all partitions that one broker leads and this one follows:

* ``follows-its-leader``: as far as the replica knows, the broker from which it fetches is its leader.
* ``fetch-at-the-end``: if the leader's session holds a partition and there is no news about it, the position last sent
  to the leader is our current leader epoch and log end: the next fetch begins where our log ends.
* ``follows-somehow``: no partition is forgotten. While no request is in flight, each one has news, is paused, has a
  question pending, or is held by the session.
"""

from __future__ import annotations

from cluster.broker.replicas.following import Following
from cluster.broker.replicas.replica import Replica
from cluster.invariants import InvariantBroken
from cluster.log import invariants as log_invariants
from cluster.replication import invariants as leader_invariants
from cluster.replication.leader import LeaderState


def validate(partition: Replica) -> None:
    """The replica, its leadership and the bounds of its log. Raises ``InvariantBroken``."""
    log, leader = partition.log, partition.leader
    log_invariants.validate(log)
    if not log.log_start_offset <= partition.high_watermark <= log.log_end_offset:
        values = f"{partition.high_watermark} in [{log.log_start_offset}, {log.log_end_offset}]"
        raise InvariantBroken(partition, "watermark-in-log", values)
    if leader is not None:
        leader_invariants.validate(leader, log.log_end_offset)
        _validate_leader(partition, leader)
    elif partition.leader_id == partition._host.broker_id or -1 < partition.leader_epoch < log.epochs.latest_number:
        values = f"{partition.leader_id} leads in {partition.leader_epoch}, the log's epochs are {log.epochs}"
        raise InvariantBroken(partition, "role-of-follower", values)


def _validate_leader(partition: Replica, leader: LeaderState) -> None:
    log, broker_id = partition.log, partition._host.broker_id
    told = (partition.leader_id, partition.leader_epoch, partition.partition_epoch)
    if told != (leader.broker_id, leader.leader_epoch, leader.isr.partition_epoch) or leader.broker_id != broker_id:
        values = f"{told} of broker {broker_id}, its leadership is {leader}"
        raise InvariantBroken(partition, "role-of-leader", values)
    begun = (leader.leader_epoch, max(leader.epoch_start_offset, log.log_start_offset))
    if log.epochs.entries[-1:] != (begun,):
        values = f"the epoch and its start are {begun}, the log has {log.epochs}"
        raise InvariantBroken(partition, "role-of-leader", values)


def validate_following(following: Following, leader_id: int, *, is_answered: bool) -> None:
    """The partitions followed from broker ``leader_id``; ``is_answered``: no request to it is in flight.

    Raises ``InvariantBroken``.
    """
    for key, followed in following._followed.items():
        partition = followed.partition
        if partition.leader is not None or partition.leader_id != leader_id:
            raise InvariantBroken(partition, "follows-its-leader", f"{key} is followed from {leader_id}")
        is_held = following._held.get(key) is followed
        is_waiting = key in following._news or key in following._paused or key in following._asking
        if is_answered and not (is_waiting or is_held):
            raise InvariantBroken(partition, "follows-somehow", f"{followed} of {following}")
        if is_held and not is_waiting and followed.sent != partition.position():
            raise InvariantBroken(partition, "fetch-at-the-end", f"told at {followed.sent}, is {partition.position()}")
