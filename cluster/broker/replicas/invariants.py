"""What always holds of one replica: where replication and the log meet, and what its leader was told of a follower.

Claimed whenever no method of the replica or its fetcher is running, as long as the log's disk has not failed.
``validate``:

* ``watermark-in-log``: log start <= high watermark <= log end.
* ``role-of-leader``: who leads has the leader epoch, the partition epoch and the leader id of its leadership, and its
  log's newest epoch is that one, begun where the leadership began (or where the log begins, if that is later).
* ``role-of-follower``: who follows does not follow itself, and its log has no epoch above the one it follows in.

``validate_following``, for all that one broker leads and this one follows:

* ``follows-its-leader``: what is followed from a broker is led by it, as far as the replica knows.
* ``fetch-at-the-end``: a partition whose place the leader's session holds, and that is no news to it, was told to the
  leader with our leader epoch and log end of now: the next fetch begins where our log ends.
* ``follows-somehow``: no one is forgotten: while no request is on its way, each partition is news, pauses, is asked
  about or is held by the session.
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
    """What is followed from broker ``leader_id``; ``is_answered``: no request to it is on its way.

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
