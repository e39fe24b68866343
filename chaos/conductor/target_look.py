"""A look at a cluster that others started: its brokers, their addresses, and the settings on which a verdict depends.

Owns the requests (Metadata and DescribeConfigs), and the message for a cluster that does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.client.async_admin import AsyncAdmin
from cluster.client.cluster_calls import BROKER_RESOURCE
from cluster.client.errors import AdminError
from cluster.seams.clock import SystemClock
from cluster.seams.transport import Transport

LOOK_MS = 5_000
#: The broker settings that decide what a verdict may excuse. With KRaft, the session timeout has another name.
WANTED = ("replica.lag.time.max.ms", "zookeeper.session.timeout.ms", "producer.id.expiration.ms")
_SESSION, _KRAFT_SESSION = "zookeeper.session.timeout.ms", "broker.session.timeout.ms"
#: What a broker does with the batches of a producer it does not know: gapless's own setting, and Kafka's way.
_UNKNOWN, _KAFKAS_WAY = "gapless.unknown.producer", "kafka"


class NotSeen(Exception):
    """The cluster does not answer; one line that says which address, and what to do."""


@dataclass(frozen=True, slots=True)
class SeenTarget:
    """``addresses`` are those that the brokers advertise, by id; ``settings`` those of ``WANTED`` that they report;
    ``topics`` the names of all topics; ``cluster_id`` is None if they do not say it."""

    addresses: Mapping[int, str]
    settings: Mapping[str, str]
    topics: frozenset[str] = frozenset()
    cluster_id: str | None = None


async def look(addresses: Sequence[str], transport: Transport) -> SeenTarget:
    """Ask. Raises NotSeen."""
    admin = AsyncAdmin(list(addresses), transport, SystemClock(), LOOK_MS)
    named = ",".join(addresses)
    try:
        view = await admin.metadata()
        if not view.brokers:
            raise NotSeen(f"the cluster at {named} reports no brokers; wait until it is up")
        broker = min(view.brokers)
        config = await admin.config(BROKER_RESOURCE, str(broker))
    except (OSError, AdminError) as error:
        raise NotSeen(
            f"no Kafka broker answers at {named} ({error}); start the cluster first, or correct the address"
        ) from error
    finally:
        await admin.close()
    found = {broker_id: f"{each.host}:{each.port}" for broker_id, each in view.brokers.items()}
    return SeenTarget(found, settings_of_brokers(config), frozenset(view.topics), view.cluster_id)


def settings_of_brokers(config: Mapping[str, str | None]) -> dict[str, str]:
    """What the brokers say about the settings that a verdict depends on. Pure."""
    found = {name: value for name in WANTED if (value := config.get(name)) is not None}
    if (session := config.get(_KRAFT_SESSION)) is not None:
        found[_SESSION] = session
    return {**found, _UNKNOWN: config.get(_UNKNOWN) or _KAFKAS_WAY}
