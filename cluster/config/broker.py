"""Broker configuration: validation, the rules between keys, and typed access to what has a structure.

Owns ``BrokerConfig``. The table is ``cluster.config.broker_keys``; what the values do is known to the rooms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from cluster.config.broker_keys import BROKER_KEYS, REFUSED
from cluster.config.errors import ConfigError
from cluster.config.keys import Value
from cluster.config.listeners import (
    OWN,
    ListenerAddress,
    PeersListener,
    exposure,
    is_digits,
    is_port,
    parse_listeners,
    peers_listener,
)
from cluster.config.topic import broker_defaults
from cluster.config.values import BrokerValues

_PLAINTEXT = "PLAINTEXT"
_PEERS = "gapless.peer.addresses"
_PROTOCOLS = "listener.security.protocol.map"
#: The names that are protocols too.
_SECURE = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})


class BrokerConfig(BrokerValues):
    """The typed configuration of one broker: ``config["replica.lag.time.max.ms"]`` is an int."""

    @property
    def broker_id(self) -> int:
        """Raises ConfigError if neither broker.id nor node.id is set."""
        value = self["broker.id"] if self["broker.id"] is not None else self["node.id"]
        if value is None:
            raise ConfigError("broker config key 'broker.id' is missing; set it, as in broker.id=1")
        return value

    @property
    def zookeeper_connect(self) -> str:
        """Raises ConfigError if zookeeper.connect is not set."""
        servers = self["zookeeper.connect"]
        if not servers:
            raise ConfigError(
                "broker config key 'zookeeper.connect' is missing; set it, as in zookeeper.connect=127.0.0.1:2181"
            )
        return servers

    @property
    def data_directory(self) -> str:
        """The one data directory: the first of log.dirs, else log.dir."""
        directories = self["log.dirs"]
        return directories[0] if directories else self["log.dir"]

    @property
    def listeners(self) -> tuple[ListenerAddress, ...]:
        """All of them; also the brokers' own where that was added to those that were asked for."""
        asked = parse_listeners(self["listeners"], "listeners")
        added = self._peers_listener.added
        return asked if added is None else (*asked, added)

    @property
    def advertised_listeners(self) -> tuple[ListenerAddress, ...]:
        return parse_listeners(self["advertised.listeners"], "advertised.listeners")

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener for peers, where a broker obeys: see ``cluster.config.listeners``."""
        return self._peers_listener.name

    @property
    def adds_own_listener(self) -> bool:
        """Whether brokers have a listener of their own that no one asked for."""
        return self._peers_listener.added is not None

    @cached_property
    def _peers_listener(self) -> PeersListener:
        asked = parse_listeners(self["listeners"], "listeners")
        return peers_listener(self.given, asked, self.advertised_listeners)

    @property
    def peer_addresses(self) -> dict[int, tuple[str, int]]:
        """``gapless.peer.addresses``: broker id -> (host, port)."""
        return parse_peer_addresses(self[_PEERS])

    def topic_defaults(self) -> dict[str, Value]:
        """The topic values this broker gives to topics that do not set them (typed)."""
        return broker_defaults(self)


def validate(mapping: Mapping[str, object]) -> BrokerConfig:
    """The typed configuration of a broker that was given ``mapping`` (texts or Python values).

    Raises ConfigError for an unknown key (naming the nearest), a value that does not fit, or a contradiction.
    """
    for name, reason in REFUSED.items():
        if name in mapping:
            raise ConfigError(f"broker config key '{name}' cannot be used: {reason}")
    config = BrokerConfig(BROKER_KEYS, BROKER_KEYS.parse(mapping), ())
    _check_identity(config)
    _check_listeners(config)
    _check_times(config)
    return BrokerConfig(BROKER_KEYS, config.given, _warnings(config))


def _check_identity(config: BrokerConfig) -> None:
    both = (config["broker.id"], config["node.id"])
    if None not in both and both[0] != both[1]:
        raise ConfigError(f"broker config keys 'broker.id' and 'node.id' differ: {both[0]} and {both[1]}")
    _ = config.peer_addresses


def _check_listeners(config: BrokerConfig) -> None:
    if not config["listeners"]:
        raise ConfigError("broker config key 'listeners' is empty; set it, as in listeners=PLAINTEXT://127.0.0.1:9092")
    names = [listener.name for listener in config.listeners]
    if len(set(names)) != len(names):
        raise ConfigError(f"broker config key 'listeners' contains a listener twice: {', '.join(names)}")
    ports = [listener.port for listener in config.listeners if listener.port]
    if len(set(ports)) != len(ports):
        raise ConfigError(f"broker config key 'listeners' contains a port twice: {', '.join(map(str, ports))}")
    for listener in config.advertised_listeners:
        if listener.name not in names:
            raise ConfigError(
                f"broker config key 'advertised.listeners' names '{listener.name}', which is not in 'listeners' "
                f"({', '.join(names)})"
            )
    wanted = config.inter_broker_listener_name
    if wanted not in names:
        key = "inter.broker.listener.name"
        key = key if config.is_given(key) else "security.inter.broker.protocol"
        raise ConfigError(f"broker config key '{key}' is '{wanted}', which is not in 'listeners'")
    mapped = _protocol_map(config[_PROTOCOLS])
    for name in names:
        if name == OWN.name and config.adds_own_listener:
            continue
        # as Kafka's default map has it: SSL is SSL, unless the map says otherwise
        usual = name if name in _SECURE else _PLAINTEXT
        protocol = mapped.get(name, usual if name == _PLAINTEXT or not mapped else None)
        if protocol is None:
            raise ConfigError(f"broker config key '{_PROTOCOLS}' has no entry for listener '{name}'")
        if protocol != _PLAINTEXT:
            raise ConfigError(
                f"listener '{name}' uses the protocol {protocol}; only PLAINTEXT is supported: "
                "listeners=PLAINTEXT://HOST:PORT"
            )


def _check_times(config: BrokerConfig) -> None:
    if config["replica.fetch.wait.max.ms"] >= config["replica.lag.time.max.ms"]:
        raise ConfigError(
            "broker config 'replica.fetch.wait.max.ms' must be below 'replica.lag.time.max.ms', else followers "
            f"drop out of the ISR: {config['replica.fetch.wait.max.ms']} >= {config['replica.lag.time.max.ms']}"
        )
    if config["replica.fetch.wait.max.ms"] >= config["replica.socket.timeout.ms"]:
        raise ConfigError(
            "broker config 'replica.fetch.wait.max.ms' must be below 'replica.socket.timeout.ms': "
            f"{config['replica.fetch.wait.max.ms']} >= {config['replica.socket.timeout.ms']}"
        )
    if config["group.min.session.timeout.ms"] > config["group.max.session.timeout.ms"]:
        raise ConfigError("broker config 'group.min.session.timeout.ms' is above 'group.max.session.timeout.ms'")


def _warnings(config: BrokerConfig) -> list[str]:
    lines = [BROKER_KEYS.carried_warning(name) for name in config.given if BROKER_KEYS.keys[name].carried]
    if config["min.insync.replicas"] > config["default.replication.factor"] and config.is_given("min.insync.replicas"):
        lines.append(
            f"min.insync.replicas {config['min.insync.replicas']} is above default.replication.factor "
            f"{config['default.replication.factor']}: every acks=all produce request to such topics is refused"
        )
    if (exposed := exposure(config.inter_broker_listener_name, config.listeners)) is not None:
        lines.append(exposed)
    if len(config["log.dirs"]) > 1:
        lines.append(f"only the first of log.dirs is used: {config['log.dirs'][0]}")
    return lines


def parse_peer_addresses(entries: Iterable[str]) -> dict[int, tuple[str, int]]:
    """``id@host:port`` entries. Raises ConfigError."""
    found: dict[int, tuple[str, int]] = {}
    for entry in entries:
        broker, at, address = entry.partition("@")
        host, colon, port = address.rpartition(":")
        if not (is_digits(broker) and at and host and colon and is_port(port) and int(port) > 0):
            raise ConfigError(f"invalid value '{entry}' for broker config key '{_PEERS}': expected id@host:port")
        found[int(broker)] = (host.strip("[]"), int(port))
    return found


def _protocol_map(entries: Iterable[str]) -> dict[str, str]:
    found = {}
    for entry in entries:
        name, colon, protocol = entry.partition(":")
        if not (name and colon and protocol):
            raise ConfigError(f"invalid value '{entry}' for broker config key '{_PROTOCOLS}': expected NAME:PROTOCOL")
        found[name.strip().upper()] = protocol.strip().upper()
    return found
