"""The values of each table under their keys, with their types: ``BrokerValues`` and so on.

Owns nothing at run time, where each is ``TypedConfig``. To mypy they are what the stub beside this module says: that
``config["replica.lag.time.max.ms"]`` is an int. ``cluster.config.stubs`` makes the stub of the tables.
"""

from __future__ import annotations

from cluster.config.keys import TypedConfig

BrokerValues = TopicValues = ProducerValues = ConsumerValues = AdminValues = TypedConfig
