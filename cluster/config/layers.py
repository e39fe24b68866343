"""Where a value comes from: the layers of Kafka's configuration (KIP-226), and which of them answers for a key. Pure.

For a broker's key, strongest first: set on this broker while it runs, set on all brokers while they run, its properties
file, the default. For a topic's key the topic itself stands before the broker keys that give it its default. Owns also
which broker keys can be changed while a broker runs. Does not own where the layers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from cluster.config.broker import BrokerConfig
from cluster.config.broker import validate as validate_broker
from cluster.config.broker_keys import BROKER_KEYS
from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, Key, KeyTable, KeyType, Value
from cluster.config.topic import BROKER_SYNONYMS, TOPIC_KEYS

#: The keys that can be changed while a broker runs: those that give topics their defaults.
DYNAMIC_BROKER_KEYS = frozenset(name for synonyms in BROKER_SYNONYMS.values() for name, _factor in synonyms)


class Source(IntEnum):
    """``config_source`` of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """One layer's word on a key; the first of a list is what holds. ``value`` is None for a secret or no value."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """A broker's file, and what was set while it ran: on it (``own``), and on all (``shared``); both are texts."""

    static: BrokerConfig
    own: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)

    def effective(self) -> BrokerConfig:
        """What holds now. Raises ConfigError."""
        if not self.own and not self.shared:
            return self.static
        return validate_broker({**self.static.given, **self.shared, **self.own})

    def synonyms(self, names: Iterable[str]) -> Iterator[Synonym]:
        """The words of all layers on broker keys that stand for each other."""
        keys = [BROKER_KEYS.keys[name] for name in names]
        for source, layer in (
            (Source.DYNAMIC_BROKER, self.own),
            (Source.DYNAMIC_DEFAULT_BROKER, self.shared),
            (Source.STATIC_BROKER, self.static.given),
        ):
            for key in keys:
                if key.name in layer:
                    raw = layer[key.name]
                    yield Synonym(key.name, shown(key, key.parse(raw, BROKER_KEYS.what)), source)
        for key in keys:
            if key.default is not None:
                yield Synonym(key.name, shown(key, key.default), Source.DEFAULT)


def shown(key: Key, value: Value) -> str | None:
    """A value as it may be told; a secret never is."""
    return None if value is None or key.kind is KeyType.PASSWORD else key.text(value)


def broker_synonyms(layers: BrokerLayers, name: str) -> list[Synonym]:
    """A broker key's, with those of the keys that substitute for it (hours for minutes for ms)."""
    for group in BROKER_SYNONYMS.values():
        names = [each for each, _factor in group]
        if name in names:
            return list(layers.synonyms(names[names.index(name) :]))
    return list(layers.synonyms([name]))


def topic_synonyms(layers: BrokerLayers, topic_config: Mapping[str, str], name: str) -> list[Synonym]:
    """A topic key's, with those of the broker keys behind it."""
    key = TOPIC_KEYS.keys[name]
    own = []
    if name in topic_config:
        own = [Synonym(name, shown(key, key.parse(topic_config[name], TOPIC_KEYS.what)), Source.TOPIC)]
    return [*own, *layers.synonyms(each for each, _factor in BROKER_SYNONYMS.get(name, ()))]


def strongest(synonyms: Iterable[Synonym]) -> Source:
    """Whose word holds: that of the first layer that has one."""
    return next((synonym.source for synonym in synonyms), Source.DEFAULT)


def check_dynamic(names: Iterable[str]) -> None:
    """Raises ConfigError for a broker key that cannot be changed while the broker runs."""
    for name in names:
        BROKER_KEYS.key(name)
        if name not in DYNAMIC_BROKER_KEYS:
            raise ConfigError(
                f"broker config key '{name}' cannot be changed while the broker runs; set it in its properties file "
                "and restart it"
            )


def type_number(table: KeyTable, name: str) -> int:
    """``config_type`` of DescribeConfigs. Kafka tells ints from longs; the limits of ours do."""
    key = table.keys[name]
    if key.kind is KeyType.INT:
        return 3 if key.maximum is not None and key.maximum <= INT_MAX else 5
    return {KeyType.BOOLEAN: 1, KeyType.STRING: 2, KeyType.DOUBLE: 6, KeyType.LIST: 7, KeyType.PASSWORD: 9}[key.kind]
