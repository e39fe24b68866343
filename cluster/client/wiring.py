"""The parts of a client's I/O, put together as its configuration says. Owns which key means which argument."""

from __future__ import annotations

from typing import NamedTuple

from cluster.client.argument_checks import MOST_STRING_BYTES, fits_string
from cluster.client.backoff import ExponentialBackoff
from cluster.client.client_metadata import ClientMetadata
from cluster.client.exchange import InFlightRequest
from cluster.client.metadata_updater import MetadataUpdater
from cluster.client.network import NetworkClient
from cluster.client.nodes import Nodes
from cluster.client.retried_calls import parse_address
from cluster.config.errors import ConfigError
from cluster.config.values import AdminValues, ConsumerValues, ProducerValues
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.seams.selector import Selector

#: What any of the clients was given.
ClientConfig = ProducerValues | ConsumerValues | AdminValues


class ClientIo(NamedTuple):
    """What the thread of one client works with."""

    metadata: ClientMetadata
    network: NetworkClient
    updater: MetadataUpdater


def client_io(
    config: ClientConfig,
    selector: Selector,
    clock: Clock,
    random: Random,
    *,
    max_in_flight: int,
    max_idle_topic_ms: int | None,
    allow_auto_topic_creation: bool = True,
) -> ClientIo:
    """The I/O of a producer or consumer (Kafka's keys). ``max_idle_topic_ms`` is ``metadata.max.idle.ms``, which only
    a producer has; None keeps topics. Raises ``ConfigError`` for invalid bootstrap servers.
    """
    metadata = ClientMetadata(
        bootstrap_servers(config),
        ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random),
        max_age_ms=config["metadata.max.age.ms"],
        max_idle_ms=max_idle_topic_ms,
    )
    nodes: Nodes[InFlightRequest] = Nodes(
        reconnect=ExponentialBackoff(config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"], random),
        setup_timeout=ExponentialBackoff(
            config["socket.connection.setup.timeout.ms"], config["socket.connection.setup.timeout.max.ms"], random
        ),
        max_in_flight=max_in_flight,
        max_idle_ms=config["connections.max.idle.ms"],
        random=random,
    )
    network = NetworkClient(
        selector,
        nodes,
        clock,
        client_id=checked_client_id(config["client.id"]),
        request_timeout_ms=config["request.timeout.ms"],
    )
    updater = MetadataUpdater(metadata, network, clock, allow_auto_topic_creation=allow_auto_topic_creation)
    return ClientIo(metadata, network, updater)


def bootstrap_servers(config: ClientConfig) -> list[tuple[str, int]]:
    """The addresses to begin with. Raises ``ConfigError`` for invalid bootstrap servers."""
    what = f"{config.table.what} config 'bootstrap.servers'"
    if not config["bootstrap.servers"]:
        raise ConfigError(f"{what} is empty: give host:port of at least one broker")
    try:
        return [parse_address(address) for address in config["bootstrap.servers"]]
    except ValueError as error:
        raise ConfigError(f"{what}: {error}") from error


def no_broker_answered(config: ClientConfig) -> str:
    """What a wait that was too short says about its reason, if no broker has told anything of the cluster so far."""
    return f"No broker of bootstrap.servers has answered so far: {', '.join(config['bootstrap.servers'])}"


def checked_client_id(name: str) -> str:
    """The name for the broker's log. Raises ``ConfigError`` for one that no request can carry."""
    if not fits_string(name):
        raise ConfigError(
            f"config 'client.id' must be valid text of at most {MOST_STRING_BYTES} bytes; "
            f"this one has {len(name)} characters"
        )
    return name
