"""MetadataUpdater: asks for metadata when it is due, and takes the answers in. Kafka's ``DefaultMetadataUpdater``.

Owns which node is asked, the one question that is in flight, and what a lost connection means for what is known
(Kafka's ``DefaultMetadataUpdater``). Does not own what is wanted nor when (``cluster.client.client_metadata``), nor
connections.
"""

from __future__ import annotations

import logging

from cluster.client.client_metadata import ClientMetadata, MetadataQuestion
from cluster.client.cluster_view import cluster_view
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse, LostConnection, Polled
from cluster.client.network import NetworkClient
from cluster.protocol.message_classes import MetadataRequest
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)


class MetadataUpdater:
    """Belongs to the thread that polls; call ``maybe_update`` before each poll and ``absorb`` after it."""

    def __init__(
        self,
        metadata: ClientMetadata,
        network: NetworkClient,
        clock: Clock,
        *,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        self._metadata = metadata
        self._network = network
        self._clock = clock
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._asked: MetadataQuestion | None = None

    def __repr__(self) -> str:
        return f"MetadataUpdater({self._metadata!r}, asked {self._asked!r})"

    def maybe_update(self, now_ms: int | None = None) -> int | None:
        """Ask if it is time to, and some node takes the question. ``now_ms`` is the time, as the caller just read it.

        Returns after how many milliseconds to call again; None if poll will return for what is awaited.
        """
        if self._asked is not None:
            return None
        now_ms = self._clock.monotonic_ms() if now_ms is None else now_ms
        if delay_ms := self._metadata.next_update_ms(now_ms):
            return delay_ms
        brokers = self._metadata.view.brokers
        node_id = self._network.least_loaded(brokers)
        if node_id is None:
            delays = [self._network.delay_ms(each) for each in brokers]
            return min((delay_ms for delay_ms in delays if delay_ms is not None), default=None)
        if not self._network.ready(brokers[node_id]):
            return self._network.delay_ms(node_id)
        question = self._metadata.next_question(now_ms)
        try:
            self._network.send_message(node_id, self._request(question), question)
        except UnsupportedVersion as error:
            logger.warning("node %d cannot be asked for metadata: %s", node_id, error)
            self._metadata.failed(now_ms)
            return self._metadata.next_update_ms(now_ms)
        self._asked = question
        return None

    def abandon(self) -> None:
        """An exception has cut I/O short: the question that is in flight, or its answer, is lost."""
        self._asked = None
        self._metadata.request_update()

    def absorb(self, polled: Polled) -> list[ClientResponse]:
        """Take in what concerns metadata; returns the responses that are others'."""
        if self._asked is None and not polled.lost:
            return polled.responses
        others = []
        for response in polled.responses:
            if self._asked is not None and response.context is self._asked:
                self._asked = None
                self._take(response)
            else:
                others.append(response)
        for lost in polled.lost:
            self._take_loss(lost)
        return others

    def _request(self, question: MetadataQuestion) -> MetadataRequest:
        return MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in question.topics],
            allow_auto_topic_creation=self._allow_auto_topic_creation,
        )

    def _take(self, response: ClientResponse) -> None:
        now_ms = self._clock.monotonic_ms()
        if response.failure is not None:
            self._metadata.unreachable(response.node_id)
            self._metadata.failed(now_ms)
        else:
            self._metadata.update(response.context, cluster_view(response.answer), now_ms)

    def _take_loss(self, lost: LostConnection) -> None:
        """What is known may be why the connection was lost: ask again. An update that was to use it has failed."""
        if lost.node_id < 0 and not lost.was_ready:
            logger.warning("bootstrap broker %s cannot be reached: %s", self._address(lost.node_id), lost.reason)
        if not lost.was_ready:
            self._metadata.unreachable(lost.node_id)
        now_ms = self._clock.monotonic_ms()
        if self._asked is None and self._metadata.next_update_ms(now_ms) == 0:
            self._metadata.failed(now_ms)
        self._metadata.request_update()

    def _address(self, node_id: int) -> str:
        broker = self._metadata.view.brokers.get(node_id)
        return str(node_id) if broker is None else f"{broker.host}:{broker.port}"
