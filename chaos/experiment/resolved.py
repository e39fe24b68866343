"""The resolved part of an experiment: its workload, its faults and its typed configurations.

Owns the value. Does not resolve options (``chaos.experiment.resolve``).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

from chaos.experiment.drawn import Drawn
from cluster.config.broker import BrokerConfig
from cluster.config.keys import KeyType, TypedConfig
from cluster.config.topic import TopicConfig
from cluster.config.values import ConsumerValues, ProducerValues
from loadgen.workload import Workload
from verifier.evidence.run_model import DefectSetting

#: The topic that the load writes, in a cluster that gapless starts.
TOPIC = "gapless"
#: The configuration keys of which each client has its own value.
EACH_ITS_OWN = frozenset({"bootstrap.servers", "client.id", "group.id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Everything that profiles, shorthands and ``--*-config`` decide together.

    ``workload`` includes the options that change it. ``faults`` is empty if a schedule was given. ``producer_config``
    and ``consumer_config`` have the keys that the load passes to its client. ``producer_in_use`` and
    ``consumer_in_use`` have what the client then uses, including the load's own defaults. ``drawn`` is what a swarm
    drew; the other fields include it.
    """

    workload: Workload
    partitions: int
    users: int
    faults: tuple[str, ...]
    defects: tuple[str, ...]
    planted: tuple[DefectSetting, ...]
    broker_config: BrokerConfig
    topic_config: TopicConfig
    producer_config: ProducerValues
    consumer_config: ConsumerValues
    producer_in_use: ProducerValues
    consumer_in_use: ConsumerValues
    drawn: Drawn | None = None

    @property
    def topic(self) -> str:
        """The topic that the load writes."""
        return TOPIC

    @property
    def acks(self) -> str:
        """``"all"``, ``"1"`` or ``"0"``."""
        acks = self.producer_in_use["acks"]
        return "all" if acks == "-1" else acks

    @property
    def idempotence(self) -> bool:
        return self.producer_in_use["enable.idempotence"]

    @property
    def min_insync_replicas(self) -> int:
        return self.topic_config["min.insync.replicas"]

    @property
    def warnings(self) -> list[str]:
        """Lines for the user about settings that are legal but probably not intended."""
        configs = (self.broker_config, self.topic_config, self.producer_config, self.consumer_config)
        return [line for config in configs for line in config.warnings]

    def to_json(self) -> dict[str, Any]:
        """All fields, with every key of every configuration, except passwords."""
        return {
            "topic_name": self.topic,
            "partitions": self.partitions,
            "users": self.users,
            "faults": list(self.faults),
            "drawn": None if self.drawn is None else self.drawn.to_json(),
            "defects": [asdict(each) for each in self.planted],
            "workload": asdict(self.workload),
            "broker": _values(self.broker_config),
            "topic": _values(self.topic_config),
            "producer": _values(self.producer_in_use, without=EACH_ITS_OWN),
            "consumer": _values(self.consumer_in_use, without=EACH_ITS_OWN),
        }


def _values(config: TypedConfig, without: Set[str] = frozenset()) -> dict[str, Any]:
    keys = config.table.keys
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in config.items()
        if keys[name].kind is not KeyType.PASSWORD and name not in without
    }
