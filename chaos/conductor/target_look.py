"""Looks at a cluster that gapless did not start: its brokers, their addresses, and the settings a verdict depends on.

Owns the requests (Metadata and DescribeConfigs) and the message for a cluster that does not answer. Does not own what
the settings mean for a verdict (``verifier.excuses.expectation``), and changes nothing in the cluster.
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
#: The broker settings that decide what a verdict may excuse. KRaft brokers name the session timeout differently.
WANTED = ("replica.lag.time.max.ms", "zookeeper.session.timeout.ms", "producer.id.expiration.ms")
_SESSION, _KRAFT_SESSION = "zookeeper.session.timeout.ms", "broker.session.timeout.ms"
#: The setting that says what a broker does with batches of an unknown producer. Only gapless has it; other brokers
#: follow Kafka's rule.
_UNKNOWN_PRODUCER, _KAFKA_RULE = "gapless.unknown.producer", "kafka"


class NotSeen(Exception):
    """The cluster does not answer. The message is one line that names the address and says what to do."""


@dataclass(frozen=True, slots=True)
class SeenTarget:
    """What the look found.

    ``addresses`` maps each broker id to the ``host:port`` that the broker advertises. ``settings`` maps the names in
    ``WANTED`` to the values that the brokers report. ``topics`` has the names of all topics. ``cluster_id`` is None if
    the brokers do not report one.
    """

    addresses: Mapping[int, str]
    settings: Mapping[str, str]
    topics: frozenset[str] = frozenset()
    cluster_id: str | None = None


async def look(addresses: Sequence[str], transport: Transport) -> SeenTarget:
    """Ask the brokers at these ``host:port`` addresses. Raises NotSeen if none answers or none is reported."""
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
    """The settings that a verdict depends on, from a broker's DescribeConfigs answer. Pure."""
    found = {name: value for name in WANTED if (value := config.get(name)) is not None}
    if (session := config.get(_KRAFT_SESSION)) is not None:
        found[_SESSION] = session
    return {**found, _UNKNOWN_PRODUCER: config.get(_UNKNOWN_PRODUCER) or _KAFKA_RULE}
