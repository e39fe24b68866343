"""Asks brokers what they see: Metadata and ApiVersions on the control listener, counters on the metrics port.

What asking takes (the protocol, HTTP) is loaded when it is first used: starting a cluster asks nothing.

Owns the asking and its timeouts; ``chaos.conductor.observed_cluster`` owns what the answers add up to. Control
listeners have no proxy before them, so a broker that is cut off still answers here, and says what it believes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from chaos.conductor.observed_cluster import BrokerView, ObservedCluster, ObservedPartition, merge
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport
from cluster.seams.units import seconds_of_ms

if TYPE_CHECKING:
    from chaos.conductor.cluster_orders import BrokerOrders
    from chaos.conductor.coordinators import CoordinatorSurvey
    from chaos.conductor.stable_survey import StableOffsets
    from cluster.client.async_admin import AsyncAdmin
    from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: A broker that is asked and does not answer within this is left out of the view.
ASK_TIMEOUT_MS = 700

#: Metrics by name, each with its labels and value.
ObservedSamples = Mapping[str, list[tuple[Mapping[str, str], float]]]


class Observer:
    """Looks at the brokers whose addresses it is told."""

    def __init__(self, transport: Transport, clock: Clock, topic: str) -> None:
        self._transport = transport
        self._clock = clock
        self._topic = topic
        self._control: dict[int, str] = {}
        self._metrics: dict[int, str] = {}
        self._is_running: dict[int, Callable[[], bool]] = {}

    def of_topic(self, topic: str) -> Observer:
        """One that looks at another topic of the same brokers, and learns of their addresses as this one does."""
        other = Observer(self._transport, self._clock, topic)
        other._control, other._metrics, other._is_running = self._control, self._metrics, self._is_running
        return other

    def set_addresses(
        self, broker_id: int, control: str, metrics: str, is_running: Callable[[], bool] = lambda: True
    ) -> None:
        """``host:port`` of a broker's control listener and metrics port ("": none); they change at each restart.

        ``is_running``: whether the broker's process is there. One that is dead is not asked: every look at the cluster
        would wait for its answer in vain, and come more than a second late.
        """
        self._control[broker_id] = control
        self._metrics[broker_id] = metrics
        self._is_running[broker_id] = is_running

    @property
    def _known(self) -> dict[int, str]:
        """The control listeners of the brokers that are there now."""
        return {each: address for each, address in self._control.items() if self._is_running[each]()}

    def forget(self, broker_id: int) -> None:
        """The broker is dead or stopped: do not wait for its answers."""
        self._control.pop(broker_id, None)
        self._metrics.pop(broker_id, None)
        self._is_running.pop(broker_id, None)

    def control_addresses(self) -> list[str]:
        """``host:port`` of each known control listener, in the order of the brokers' ids."""
        return [address for _, address in sorted(self._known.items())]

    def coordinators(self) -> CoordinatorSurvey:
        """Who coordinates what, as the brokers say now."""
        from chaos.conductor.coordinators import CoordinatorSurvey

        return CoordinatorSurvey(self._known, self._transport, ASK_TIMEOUT_MS)

    def orders(self) -> BrokerOrders:
        """Orders to the cluster, and questions to single brokers, at the addresses that are known now."""
        from chaos.conductor.cluster_orders import BrokerOrders

        return BrokerOrders(self._known, self._transport, self._clock, ASK_TIMEOUT_MS)

    def admin(self, timeout_ms: int) -> AsyncAdmin:
        """An admin client over all known control listeners."""
        return self._admin(self.control_addresses(), timeout_ms)

    def _admin(self, addresses: list[str], timeout_ms: int) -> AsyncAdmin:
        from cluster.client.async_admin import AsyncAdmin

        return AsyncAdmin(addresses, self._transport, self._clock, timeout_ms)

    async def view(self) -> ObservedCluster:
        """Ask all brokers at once and add up what came back in time."""
        answers = await asyncio.gather(*(self._ask(broker_id) for broker_id in self._known))
        return merge([answer for answer in answers if answer is not None])

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        """Whether the broker answers an ApiVersions request in time."""
        address = self._known.get(broker_id)
        if address is None:
            return False
        async with self._alone(address, timeout_ms) as admin:
            try:
                async with asyncio.timeout(seconds_of_ms(timeout_ms)):
                    await admin.api_versions(address)
            except OSError:
                return False
        return True

    async def stable_offsets(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, StableOffsets]:
        """Of these partitions, as far as a broker says that it leads them."""
        from chaos.conductor.stable_survey import stable_offsets

        return await stable_offsets(self.control_addresses(), places, self._transport, ASK_TIMEOUT_MS)

    async def _ask(self, broker_id: int) -> BrokerView | None:
        address = self._known.get(broker_id)
        if address is None:
            return None
        async with self._alone(address, ASK_TIMEOUT_MS) as admin:
            try:
                async with asyncio.timeout(seconds_of_ms(ASK_TIMEOUT_MS)):
                    answer = await admin.metadata([self._topic])
            except OSError as error:
                logger.debug("broker %d does not answer: %r", broker_id, error)
                return None
        topic = answer.topics.get(self._topic)
        partitions = {
            index: ObservedPartition(seen.leader, seen.leader_epoch, seen.replicas, seen.isr)
            for index, seen in (topic.partitions if topic else {}).items()
        }
        return BrokerView(broker_id, frozenset(answer.brokers), answer.controller_id, partitions)

    @asynccontextmanager
    async def _alone(self, address: str, timeout_ms: int) -> AsyncIterator[AsyncAdmin]:
        """A client that knows one broker and so cannot turn to another one."""
        admin = self._admin([address], timeout_ms)
        try:
            yield admin
        finally:
            await admin.close()

    def metrics_urls(self) -> list[str]:
        """Where the brokers show their metrics."""
        return [_url(self._metrics[broker]) for broker in sorted(self._known)]

    async def metrics(self, broker_id: int) -> ObservedSamples | None:
        """All samples of a broker by name, with their labels; None if it does not answer."""
        address = self._metrics.get(broker_id) if broker_id in self._known else None
        return await asyncio.to_thread(scrape, _url(address)) if address else None

    async def counter(self, broker_id: int, name: str) -> float | None:
        """A counter summed over its labels; 0 if the broker has not counted yet, None if it does not answer."""
        samples = await self.metrics(broker_id)
        return None if samples is None else sum(value for _, value in samples.get(name, []))


def _url(address: str) -> str:
    return f"http://{address}/metrics"


def scrape(url: str) -> ObservedSamples | None:
    """All samples of one broker; None if it does not answer. Blocks."""
    import requests
    from prometheus_client.parser import text_string_to_metric_families

    try:
        with requests.Session() as session:
            session.trust_env = False
            response = session.get(url, timeout=seconds_of_ms(ASK_TIMEOUT_MS))
            response.raise_for_status()
            text = str(response.text)
    except requests.RequestException as error:
        logger.debug("%s does not answer: %r", url, error)
        return None
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples
