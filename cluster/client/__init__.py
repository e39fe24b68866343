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
    from cluster.client.group_metadata import ConsumerGroupMetadata
    from cluster.client.new_topic import NewTopic
    from cluster.client.offset_listing import ListedOffset
    from cluster.client.producer.producer import Producer
    from cluster.client.producer.transaction.transaction_errors import (
        AbortableTransactionError,
        FatalTransactionError,
        IllegalTransactionCall,
        ProducerFenced,
        TransactionAborted,
        TransactionError,
        TransactionTimeout,
    )

__all__ = [
    "AbortableTransactionError",
    "Admin",
    "AdminError",
    "AsyncAdmin",
    "BrokerAddress",
    "BrokerConnection",
    "ClusterView",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "ConsumerWokenUp",
    "FatalTransactionError",
    "IllegalTransactionCall",
    "ListedOffset",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionView",
    "Producer",
    "ProducerFenced",
    "RebalanceListener",
    "TopicView",
    "TransactionAborted",
    "TransactionError",
    "TransactionTimeout",
    "UnsupportedVersion",
]

#: Where each name is, below this package.
_ROOMS = {
    "AbortableTransactionError": "producer.transaction.transaction_errors",
    "Admin": "admin",
    "AdminError": "errors",
    "AsyncAdmin": "async_admin",
    "BrokerAddress": "cluster_view",
    "BrokerConnection": "connection",
    "ClusterView": "cluster_view",
    "Consumer": "consumer.consumer",
    "ConsumerGroupMetadata": "group_metadata",
    "ConsumerRecord": "consumer.results",
    "ConsumerWokenUp": "consumer.results",
    "FatalTransactionError": "producer.transaction.transaction_errors",
    "IllegalTransactionCall": "producer.transaction.transaction_errors",
    "ListedOffset": "offset_listing",
    "NewTopic": "new_topic",
    "OffsetAndMetadata": "committed_offset",
    "OffsetAndTimestamp": "consumer.results",
    "PartitionView": "cluster_view",
    "Producer": "producer.producer",
    "ProducerFenced": "producer.transaction.transaction_errors",
    "RebalanceListener": "consumer.group.rebalance_listener",
    "TopicView": "cluster_view",
    "TransactionAborted": "producer.transaction.transaction_errors",
    "TransactionError": "producer.transaction.transaction_errors",
    "TransactionTimeout": "producer.transaction.transaction_errors",
    "UnsupportedVersion": "errors",
}


def __getattr__(name: str) -> Any:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{room}"), name)
