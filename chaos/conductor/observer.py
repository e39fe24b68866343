"""Asks brokers what they see: Metadata and ApiVersions on the control listener, counters on the metrics port.

Owns the requests and their timeouts. Does not own how the answers are merged (``chaos.conductor.observed_cluster``). No
proxy is in front of a control listener, so a broker that is cut off from its peers still answers here with what it
believes. Imports the protocol and HTTP code on first use, because starting a cluster does not need it.
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

#: A broker that does not answer within this time is left out of the view.
ASK_TIMEOUT_MS = 700

#: Metric name -> its samples, each with its labels and value.
ObservedSamples = Mapping[str, list[tuple[Mapping[str, str], float]]]


class Observer:
    """Asks the brokers whose addresses were set, about one topic."""

    def __init__(self, transport: Transport, clock: Clock, topic: str) -> None:
        self._transport = transport
        self._clock = clock
        self._topic = topic
        self._control: dict[int, str] = {}
        self._metrics: dict[int, str] = {}
        self._is_running: dict[int, Callable[[], bool]] = {}

    def of_topic(self, topic: str) -> Observer:
        """An observer of another topic. It shares the addresses of this one, including those that are set later."""
        other = Observer(self._transport, self._clock, topic)
        other._control, other._metrics, other._is_running = self._control, self._metrics, self._is_running
        return other

    def set_addresses(
        self, broker_id: int, control: str, metrics: str, is_running: Callable[[], bool] = lambda: True
    ) -> None:
        """Set the ``host:port`` of a broker's control listener and metrics port ("" if it has none).

        To be called at each restart of the broker. ``is_running``: whether the broker's process is there. A dead broker
        is not asked: every look at the cluster would wait for its answer, and come more than a second late.
        """
        self._control[broker_id] = control
        self._metrics[broker_id] = metrics
        self._is_running[broker_id] = is_running

    @property
    def _alive(self) -> dict[int, str]:
        """The control listeners of the brokers that run now. Orders go to all: one may come back while they wait."""
        return {each: address for each, address in self._control.items() if self._is_running[each]()}

    def forget(self, broker_id: int) -> None:
        """Stop asking a broker that is dead or being stopped, so that no call waits for it."""
        self._control.pop(broker_id, None)
        self._metrics.pop(broker_id, None)
        self._is_running.pop(broker_id, None)

    def control_addresses(self) -> list[str]:
        """The ``host:port`` of each known control listener, ordered by broker id."""
        return [self._control[broker] for broker in sorted(self._control)]

    def coordinators(self) -> CoordinatorSurvey:
        """A survey of coordinators at the currently known addresses."""
        from chaos.conductor.coordinators import CoordinatorSurvey

        return CoordinatorSurvey(self._alive, self._transport, ASK_TIMEOUT_MS)

    def orders(self) -> BrokerOrders:
        """Admin requests to the cluster and to single brokers, at the currently known addresses."""
        from chaos.conductor.cluster_orders import BrokerOrders

        return BrokerOrders(dict(self._control), self._transport, self._clock, ASK_TIMEOUT_MS)

    def admin(self, timeout_ms: int) -> AsyncAdmin:
        """An admin client that uses all known control listeners."""
        return self._admin(self.control_addresses(), timeout_ms)

    def _admin(self, addresses: list[str], timeout_ms: int) -> AsyncAdmin:
        from cluster.client.async_admin import AsyncAdmin

        return AsyncAdmin(addresses, self._transport, self._clock, timeout_ms)

    async def view(self) -> ObservedCluster:
        """Ask all brokers at once for Metadata, and merge the answers that arrive within ``ASK_TIMEOUT_MS``."""
        answers = await asyncio.gather(*(self._ask(broker_id) for broker_id in self._alive))
        return merge([answer for answer in answers if answer is not None])

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        """Whether the broker answers an ApiVersions request in time."""
        address = self._alive.get(broker_id)
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
        """The last stable offsets and high watermarks of these partitions. One that no broker leads is absent."""
        from chaos.conductor.stable_survey import stable_offsets

        return await stable_offsets(self.control_addresses(), places, self._transport, ASK_TIMEOUT_MS)

    async def _ask(self, broker_id: int) -> BrokerView | None:
        address = self._alive.get(broker_id)
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
        """An admin client that knows a single broker, so that it cannot ask another one instead."""
        admin = self._admin([address], timeout_ms)
        try:
            yield admin
        finally:
            await admin.close()

    def metrics_urls(self) -> list[str]:
        """The URLs of the brokers' metrics, ordered by broker id."""
        return [_url(self._metrics[broker]) for broker in sorted(self._metrics)]

    async def metrics(self, broker_id: int) -> ObservedSamples | None:
        """All metric samples of a broker; None if it does not answer."""
        address = self._metrics.get(broker_id) if broker_id in self._alive else None
        return await asyncio.to_thread(scrape, _url(address)) if address else None

    async def counter(self, broker_id: int, name: str) -> float | None:
        """The sum of a counter over its labels; 0 if the broker does not have it yet, None if it does not answer."""
        samples = await self.metrics(broker_id)
        return None if samples is None else sum(value for _, value in samples.get(name, []))


def _url(address: str) -> str:
    return f"http://{address}/metrics"


def scrape(url: str) -> ObservedSamples | None:
    """All metric samples at this URL; None if there is no answer. Blocks."""
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
