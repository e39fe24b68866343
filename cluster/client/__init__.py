"""client: what talks to brokers from outside: connections and the admin client.

Owns requests, retries and what an answer means to a program. Does not own layouts (``cluster.protocol``) nor sockets
(``cluster.seams``).
"""

from __future__ import annotations

from cluster.client.admin import Admin, ListedOffset
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.connection import BrokerConnection
from cluster.client.errors import AdminError, UnsupportedVersion
from cluster.client.new_topic import NewTopic
from cluster.client.producer.producer import Producer

__all__ = [
    "Admin",
    "AdminError",
    "BrokerAddress",
    "BrokerConnection",
    "ClusterView",
    "ListedOffset",
    "NewTopic",
    "PartitionView",
    "Producer",
    "TopicView",
    "UnsupportedVersion",
]
