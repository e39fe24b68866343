"""What always holds of a group coordinator, whenever none of its methods is running.

``validate``:

* ``filed-where-led``: a group is filed under its id, in the partition that its id belongs to, which is led and loaded.
* ``members-filed``: members are filed under their ids, static ones under their instances too, each once; a pending id
  is not a member's.
* ``leader-is-member``: a group with members is led by one of them, one without by none.
* ``members-fit-state``: Empty and Dead groups have no members, those that complete a rebalance or are Stable have.
* ``protocol-shared``: members have a protocol in common, and the chosen one is one that all support.
* ``size-counted``: what members, pending ids, assignments and offsets take in memory is counted as each of them tells
  it; what is in flight counts for something, and nothing else does.
* ``room-counted``: what all groups take together, and those of each host, is the sum of what each takes.
* ``supporters-there``: a protocol is counted if a member offers it, and no other.
* ``waits-in-phase``: JoinGroup waits in PreparingRebalance alone, or in Stable while a static member's new id is being
  stored; SyncGroup waits in CompletingRebalance alone. The group knows which members have joined.
* ``wait-ends``: what waits has an end: a join timer, a sync timer, or an append whose result will come.
* ``members-watched``: a member whose requests do not wait has a session timer, and so has a new one; a pending id has
  its timer. No timer is of something that is gone.
* ``sync-awaited``: members are waited for that are there, after a generation began.
* ``offsets-counted``: commits in flight are counted above zero, and no producer is listed without a pending offset;
  by partition the same are listed.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import TimerKind, TimerName
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_offsets import GroupOffsets, offset_bytes, pending_bytes
from cluster.coordinator.group.members import MEMBER_BYTES
from cluster.coordinator.group.sizes import sync_growth, total_bytes
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.partitioning import partition_for
from cluster.invariants import InvariantBroken
from cluster.topic_partition import TopicPartition

_IN_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


def validate(coordinator: GroupCoordinator) -> None:
    """All groups of one coordinator. Raises ``InvariantBroken``."""
    for partition, groups in coordinator.groups.items():
        home = coordinator.homes.get(partition)
        for group_id, group in groups.items():
            belongs = partition_for(group_id, coordinator.settings.offsets_topic_num_partitions)
            if home is None or home.is_loading or belongs != partition or group.group_id != group_id:
                values = f"{group_id!r} belongs to {belongs}, filed in {partition}, which is {home}"
                raise InvariantBroken(group, "filed-where-led", values)
            validate_group(group)
    room, of_hosts = coordinator.room, Counter[str]()
    for group in coordinator.all_groups():
        of_hosts[group.client_host] += total_bytes(group)
    if room.taken_bytes != of_hosts.total() or room.of_hosts != of_hosts:
        raise InvariantBroken(room, "room-counted", f"{room.taken_bytes}, {room.of_hosts}, not {of_hosts}")


def validate_group(group: Group) -> None:
    """One group by itself. Raises ``InvariantBroken``."""
    _validate_members(group)
    _validate_waits(group)
    _validate_timers(group)
    _validate_offsets(group, group.offsets)


def _validate_offsets(group: Group, offsets: GroupOffsets) -> None:
    by_partition: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for producer_id, pending in offsets.transactions.items():
        for partition in pending:
            by_partition[partition].add(producer_id)
    is_counted = all(count > 0 for count in offsets.in_flight.values()) and all(offsets.transactions.values())
    if not is_counted or offsets.producers != by_partition:
        values = f"{offsets.in_flight}, {offsets.transactions}, {offsets.producers}"
        raise InvariantBroken(group, "offsets-counted", values)
    waiting = [each.committed for some in offsets.transactions.values() for each in some.values()]
    placed_bytes = sum(map(pending_bytes, waiting))
    placed_bytes += sum(offset_bytes(each.committed) for each in offsets.committed.values())
    if offsets.placed_bytes != placed_bytes or bool(offsets.in_flight_bytes) != bool(offsets.in_flight):
        values = f"offsets {offsets.placed_bytes}, not {placed_bytes}, in flight {offsets.in_flight_bytes}"
        raise InvariantBroken(group, "size-counted", values)


def _validate_members(group: Group) -> None:
    members = group.members
    static = {each.group_instance_id: each.member_id for each in members.values() if each.group_instance_id is not None}
    is_filed = all(member.member_id == member_id for member_id, member in members.items())
    if not is_filed or static != group.static_members or not group.pending_members.isdisjoint(members):
        values = f"{members}, static {group.static_members}, pending {group.pending_members}"
        raise InvariantBroken(group, "members-filed", values)
    if group.leader not in (members or (None,)):
        raise InvariantBroken(group, "leader-is-member", f"{group.leader} of {list(members)}")
    may_have, must_have = group.state not in (GroupState.EMPTY, GroupState.DEAD), group.state in _IN_GENERATION
    if bool(members) not in {may_have, must_have}:
        raise InvariantBroken(group, "members-fit-state", f"{list(members)}")
    shared = set.intersection(*({name for name, _ in each.protocols} for each in members.values())) if members else {""}
    if not shared or (must_have and group.protocol_name not in shared):
        raise InvariantBroken(group, "protocol-shared", f"{group.protocol_name} of {shared}")
    size_bytes = sum(member.size_bytes for member in members.values()) + MEMBER_BYTES * len(group.pending_members)
    if group.size_bytes != size_bytes:
        raise InvariantBroken(group, "size-counted", f"{group.size_bytes}, not {size_bytes}")
    assigned = {member_id: member.assignment for member_id, member in members.items()}
    if sync_growth(group, assigned):
        raise InvariantBroken(group, "size-counted", f"assignments {group.assigned_bytes}, not those of {assigned}")
    offered = {name for member in members.values() for name, _ in member.protocols}
    if group.supporters.offered != offered:
        raise InvariantBroken(group, "supporters-there", f"{group.supporters.offered}, not {offered}")


def _validate_waits(group: Group) -> None:
    joining = {member_id for member_id, member in group.members.items() if member.join_waiter is not None}
    syncing = {member_id for member_id, member in group.members.items() if member.sync_waiter is not None}
    may_join = joining if group.state is GroupState.PREPARING_REBALANCE else set()
    if group.state is GroupState.STABLE:
        may_join = group.replacing
    may_sync = syncing if group.state is GroupState.COMPLETING_REBALANCE else set()
    if joining != set(group.joined) or joining != may_join or syncing != may_sync:
        values = f"joining {joining}, known {group.joined}, replacing {group.replacing}, syncing {syncing}"
        raise InvariantBroken(group, "waits-in-phase", values)
    if not group.pending_sync <= set(group.members) or (group.pending_sync and group.state not in _IN_GENERATION):
        raise InvariantBroken(group, "sync-awaited", f"{group.pending_sync} of {list(group.members)}")
    kinds = {name.kind for name in group.timers}
    ends = {
        GroupState.PREPARING_REBALANCE: TimerKind.JOIN in kinds,
        GroupState.COMPLETING_REBALANCE: TimerKind.SYNC in kinds or group.storing,
    }
    if not ends.get(group.state, True):
        raise InvariantBroken(group, "wait-ends", f"timers {group.timers}, storing {group.storing}")


def _validate_timers(group: Group) -> None:
    names: set[TimerName] = set()
    needed: set[TimerName] = set()
    for member_id, member in group.members.items():
        name = TimerName(group.group_id, TimerKind.SESSION, member_id)
        names.add(name)
        if not member.is_parked:
            needed.add(name)
    pending = {TimerName(group.group_id, TimerKind.PENDING, member_id) for member_id in group.pending_members}
    if group.state is GroupState.PREPARING_REBALANCE:
        names.add(TimerName(group.group_id, TimerKind.JOIN))
    if group.pending_sync:
        names.add(TimerName(group.group_id, TimerKind.SYNC))
    if not needed | pending <= group.timers.keys() <= names | pending:
        missing, strange = (needed | pending) - group.timers.keys(), group.timers.keys() - names - pending
        raise InvariantBroken(group, "members-watched", f"missing {missing}, of nothing {strange}")
