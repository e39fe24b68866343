"""What is set on topics, on this broker and on all brokers: looking at it and changing it.

Owns which resources are served here, what may be set on them, and which error each failure is. Does not own the
storing (``broker.config_store``), how brokers take the news (``broker.dynamic_configs``), nor any message
(``handlers``). What is stored is read from ZooKeeper, as in Kafka: a client sees what it has just set, whichever broker
it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from cluster.broker.config_store import ALL_BROKERS, BROKERS, TOPICS, NoSuchTopic
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.services import Services
from cluster.config.asked import check_asked
from cluster.config.broker_keys import BROKER_KEYS
from cluster.config.errors import ConfigError
from cluster.config.keys import KeyTable, KeyType, TypedConfig
from cluster.config.layers import (
    DYNAMIC_BROKER_KEYS,
    BrokerLayers,
    Source,
    Synonym,
    broker_synonyms,
    check_dynamic,
    shown,
    strongest,
    topic_synonyms,
    type_number,
)
from cluster.config.topic import TOPIC_KEYS, validate
from cluster.metadata.store import StoreError, TooLargeError
from cluster.metadata.znodes import MalformedZnode
from cluster.protocol.errors import ErrorCode


class ResourceType(IntEnum):
    """What a resource is, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


class Resource(NamedTuple):
    """Something with a configuration: where it is stored, and which keys it may have."""

    kind: str
    name: str
    table: KeyTable

    @property
    def is_topic(self) -> bool:
        return self.kind == TOPICS


class Setting(NamedTuple):
    """One key of a resource, its value as text, and where that comes from."""

    name: str
    value: str | None
    read_only: bool
    source: Source
    is_sensitive: bool
    synonyms: list[Synonym]
    type_number: int
    doc: str


#: (the table of its keys, what is stored) -> what to store. Raises ConfigError.
SettingsChange = Callable[[KeyTable, dict[str, str]], dict[str, str]]

#: What looking at a resource or changing it may end with; ``refusal`` has the answer to each.
REFUSALS = (RequestRefused, NoSuchTopic, ConfigError, MalformedZnode, TimeoutError, StoreError)


def refusal(error: Exception, name: str) -> tuple[ErrorCode, str]:
    """The code and the text to answer for the resource ``name``, which ended with one of ``REFUSALS``."""
    if isinstance(error, RequestRefused):
        return error.error_code, error.message
    if isinstance(error, NoSuchTopic):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}"
    if isinstance(error, (ConfigError, MalformedZnode, TooLargeError)):
        return ErrorCode.INVALID_CONFIG, str(error)
    # A change may have happened anyway; doing it again does no harm.
    return ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper, where configurations are, does not answer"


async def describe(services: Services, resource_type: int, name: str, keys: Sequence[str] | None) -> list[Setting]:
    """The settings of a resource; ``keys``: these alone, as far as it has them. Raises ``REFUSALS``."""
    resource = _find(services, resource_type, name)
    configs = services.control.configs
    stored = await configs.store.read(resource.kind, resource.name)
    if resource.is_topic:
        config: TypedConfig = validate(stored, configs.broker_config)
        layers = configs.layers
        wanted = list(config)
    else:
        layers = await _layers(services)
        config = layers.effective()
        # Of all brokers together nothing is known but what was set on all of them.
        wanted = list(stored) if resource.name == ALL_BROKERS else list(config)
    if keys is not None:
        known = set(wanted)
        wanted = [key for key in dict.fromkeys(keys) if key in known]
    return [_setting(resource, config, stored, layers, key) for key in wanted]


async def alter(
    services: Services, resource_type: int, name: str, change: SettingsChange, *, validate_only: bool
) -> None:
    """Store what ``change`` makes of what is stored, if it is legal as a whole. Raises ``REFUSALS``."""
    resource = _find(services, resource_type, name)

    def checked(stored: dict[str, str]) -> dict[str, str]:
        wanted = change(resource.table, stored)
        _check(services, resource, wanted)
        check_asked(wanted, stored, services.config)
        return wanted

    store = services.control.configs.store
    if validate_only:
        await store.check(resource.kind, resource.name, checked)
    else:
        await store.alter(resource.kind, resource.name, checked)


def _find(services: Services, resource_type: int, name: str) -> Resource:
    """Raises RequestRefused."""
    if resource_type == ResourceType.TOPIC:
        if services.metadata.topic(name) is None:
            raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
        return Resource(TOPICS, name, TOPIC_KEYS)
    if resource_type == ResourceType.BROKER:
        own = str(services.config.broker_id)
        if name not in ("", own):
            raise RequestRefused(
                ErrorCode.INVALID_REQUEST, f"this is broker {own}, not {name!r}; ask that one, or all by the empty name"
            )
        return Resource(BROKERS, name or ALL_BROKERS, BROKER_KEYS)
    raise RequestRefused(
        ErrorCode.INVALID_REQUEST, f"resource type {resource_type} has no configuration here: topics are 2, brokers 4"
    )


async def _layers(services: Services) -> BrokerLayers:
    configs = services.control.configs
    own = await configs.store.read(BROKERS, str(services.config.broker_id))
    return BrokerLayers(services.config, own, await configs.store.read(BROKERS, ALL_BROKERS))


def _setting(
    resource: Resource, config: TypedConfig, stored: Mapping[str, str], layers: BrokerLayers, name: str
) -> Setting:
    key = resource.table.keys[name]
    synonyms = topic_synonyms(layers, stored, name) if resource.is_topic else broker_synonyms(layers, name)
    if resource.name == ALL_BROKERS and not resource.is_topic:
        synonyms = [synonym for synonym in synonyms if synonym.source >= Source.DYNAMIC_DEFAULT_BROKER]
        value = shown(key, key.parse(stored[name], resource.table.what))
    else:
        value = shown(key, config[name])
    return Setting(
        name,
        value,
        read_only=not resource.is_topic and name not in DYNAMIC_BROKER_KEYS,
        source=_source(name, synonyms, is_topic=resource.is_topic),
        is_sensitive=key.kind is KeyType.PASSWORD,
        synonyms=synonyms,
        type_number=type_number(resource.table, name),
        doc=key.doc,
    )


def _source(name: str, synonyms: list[Synonym], *, is_topic: bool) -> Source:
    """Of a topic's value: the strongest word there is. Of a broker's: the strongest on that very key."""
    return strongest(synonyms if is_topic else [synonym for synonym in synonyms if synonym.name == name])


def _check(services: Services, resource: Resource, wanted: dict[str, str]) -> None:
    """What is stored must be legal as a whole, with this broker's other layers. Raises ConfigError."""
    configs = services.control.configs
    if resource.is_topic:
        validate(wanted, configs.broker_config)
        return
    check_dynamic(wanted)
    layers = configs.layers
    if resource.name == ALL_BROKERS:
        BrokerLayers(layers.static, layers.own, wanted).effective()
    else:
        BrokerLayers(layers.static, wanted, layers.shared).effective()
