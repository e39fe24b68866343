"""``cooperative-sticky``: like ``sticky``, but what another member owns is only taken away (KIP-429).

Owns Kafka's CooperativeStickyAssignor. Members continue reading what they own while they join, and tell it in their
subscription. A partition that changes its owner is assigned to no one: the previous one gives it away and joins again,
and a rebalance after that assigns it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.consumer.assignors.claims import Claim, settle_claims
from cluster.client.consumer.assignors.sticky import divide
from cluster.client.consumer.assignors.subscribers import Divided, PartitionCounts, Subscriber
from cluster.protocol.consumer_protocol import NO_GENERATION, Subscription
from cluster.protocol.primitives import INT32


def assign_cooperative(counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> Divided:
    claims = settle_claims(counts, {each.member_id: claim_of(each.subscription) for each in subscribers})
    divided = divide(counts, subscribers, claims)
    return {
        member_id: [
            partition
            for partition in partitions
            if claims.owner.get(partition, member_id) == member_id and partition not in claims.disputed
        ]
        for member_id, partitions in divided.items()
    }


def user_data(generation_id: int) -> bytes:
    """The generation of what a member owns, for leaders that do not know it from the subscription (KIP-792)."""
    return INT32.pack(generation_id)


def claim_of(subscription: Subscription) -> Claim:
    """What a member owns; before version 2 of the subscription its generation is in the user data."""
    generation_id, data = subscription.generation_id, subscription.user_data
    if generation_id < 0 and data is not None and len(data) >= INT32.size:
        (generation_id,) = INT32.unpack_from(data)
    return Claim(subscription.owned_partitions, max(generation_id, NO_GENERATION))
