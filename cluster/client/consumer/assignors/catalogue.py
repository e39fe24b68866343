"""The assignors by the names under which consumers of all clients agree on one.

Owns the names, and which of them lets members keep what they own while they join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster.client.consumer.assignors.cooperative import assign_cooperative
from cluster.client.consumer.assignors.simple import assign_range, assign_round_robin
from cluster.client.consumer.assignors.sticky import assign_sticky
from cluster.client.consumer.assignors.subscribers import Divided, PartitionCounts, Subscriber

Assign = Callable[[PartitionCounts, Sequence[Subscriber]], Divided]

ASSIGNORS: dict[str, Assign] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
}
#: Members of a group with one of these keep what they own while they join; with all others they give it away before.
COOPERATIVE = frozenset({"cooperative-sticky"})
