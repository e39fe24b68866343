"""What an experiment comes to: its workload, its faults and its typed configurations. A value; resolves nothing."""

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

#: The one topic of the workload.
TOPIC = "gapless"
#: What each of a load's clients has a value of its own for.
EACH_ITS_OWN = frozenset({"bootstrap.servers", "client.id", "group.id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Everything that profiles, shorthands and ``--*-config`` decide together.

    ``workload`` says all that its options say. ``faults`` is empty if a schedule was given. ``producer_config`` and
    ``consumer_config`` hold the keys that the load hands to its client; ``producer_in_use`` and ``consumer_in_use``
    what the client then works with, the load's own defaults included. ``drawn``: what a profile of swarms drew, which
    all of these have in them.
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
        """The one topic of the workload."""
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
        """Lines for people about settings that are legal and probably not meant."""
        configs = (self.broker_config, self.topic_config, self.producer_config, self.consumer_config)
        return [line for config in configs for line in config.warnings]

    def to_json(self) -> dict[str, Any]:
        """All of it, with the value of every key of every configuration; a secret is left out."""
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
