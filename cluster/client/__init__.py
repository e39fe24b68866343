"""client: what talks to brokers from outside: producer, consumer, admin, and the connections below them.

Owns requests, retries and what an answer means to a program. Does not own layouts (``cluster.protocol``) nor sockets
(``cluster.seams``). Each name is loaded when it is first used: a broker needs no more than a connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.client.admin import Admin
    from cluster.client.async_admin import AsyncAdmin
    from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
    from cluster.client.committed_offset import OffsetAndMetadata
    from cluster.client.connection import BrokerConnection
    from cluster.client.consumer.consumer import Consumer
    from cluster.client.consumer.group.rebalance_listener import RebalanceListener
    from cluster.client.consumer.results import ConsumerRecord, ConsumerWokenUp, OffsetAndTimestamp
    from cluster.client.errors import AdminError, UnsupportedVersion
    from cluster.client.new_topic import NewTopic
    from cluster.client.offset_listing import ListedOffset
    from cluster.client.producer.producer import Producer

__all__ = [
    "Admin",
    "AdminError",
    "AsyncAdmin",
    "BrokerAddress",
    "BrokerConnection",
    "ClusterView",
    "Consumer",
    "ConsumerRecord",
    "ConsumerWokenUp",
    "ListedOffset",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionView",
    "Producer",
    "RebalanceListener",
    "TopicView",
    "UnsupportedVersion",
]

#: Where each name is, below this package.
_ROOMS = {
    "Admin": "admin",
    "AdminError": "errors",
    "AsyncAdmin": "async_admin",
    "BrokerAddress": "cluster_view",
    "BrokerConnection": "connection",
    "ClusterView": "cluster_view",
    "Consumer": "consumer.consumer",
    "ConsumerRecord": "consumer.results",
    "ConsumerWokenUp": "consumer.results",
    "ListedOffset": "offset_listing",
    "NewTopic": "new_topic",
    "OffsetAndMetadata": "committed_offset",
    "OffsetAndTimestamp": "consumer.results",
    "PartitionView": "cluster_view",
    "Producer": "producer.producer",
    "RebalanceListener": "consumer.group.rebalance_listener",
    "TopicView": "cluster_view",
    "UnsupportedVersion": "errors",
}


def __getattr__(name: str) -> Any:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{room}"), name)
