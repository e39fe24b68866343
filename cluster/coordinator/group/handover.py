"""Whether a generation ended in the middle of a cooperative handover: a member gave away a partition that no one has.

Owns how the members' own data shows it (KIP-429): what each owned when it joined, and what all were assigned. A member
that gives something away joins again at once, and the rebalance that follows assigns it. A coordinator that takes over
in between knows only the stored generation, and a static member that restarts in between has forgotten what it gave
away: without another rebalance, no member would read that partition. Pure. Does not own when a group rebalances
(``joining``).
"""

from __future__ import annotations

from cluster.coordinator.group.group import Group
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, decode_assignment, decode_subscription
from cluster.protocol.errors import MalformedRequest

#: The most bytes of subscriptions and assignments that are decoded, since everything else waits meanwhile: enough for
#: some hundred members. A larger group counts as not handing over, as in Kafka.
MOST_BYTES = 1 << 17


def is_handing_over(group: Group) -> bool:
    """Whether a partition that is still wanted was owned by a member and is assigned to none."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.protocol_name is None:
        return False
    told = [member.metadata(group.protocol_name) for member in group.members.values()]
    if sum(map(len, told)) + group.assigned_bytes > MOST_BYTES:
        return False
    try:
        subscriptions = [decode_subscription(data) for data in told]
        wanted = {topic for each in subscriptions for topic in each.topics}
        owned = {place for each in subscriptions for place in each.owned_partitions if place[0] in wanted}
        for member in group.members.values() if owned else ():
            owned.difference_update(decode_assignment(member.assignment).partitions)
    except MalformedRequest:
        return False
    return bool(owned)
