"""AsyncAdmin: questions and orders to a cluster, asked again until its deadline as long as the answer may change.

Owns the questions about topics, and what a retry means for creating some that may have been created already. The other
calls are in ``cluster_calls``, ``partition_calls``, ``group_calls`` and ``transaction_admin_calls``, the choice of
broker and the retries in ``retried_calls``. Its form for programs without an event loop is ``cluster.client.admin``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.argument_checks import checked_list, checked_topics
from cluster.client.cluster_view import ClusterView, TopicView
from cluster.client.errors import AdminError
from cluster.client.new_topic import NewTopic, creatable
from cluster.client.retried_calls import Retriable, parse_address
from cluster.client.transaction_admin_calls import TransactionAdminCalls
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import CreateTopicsRequest


class AsyncAdmin(TransactionAdminCalls):
    """``bootstrap`` is ``host:port`` strings. Every call may take ``timeout_ms`` and then raises ``TimeoutError``.

    Answers that do not change by waiting raise ``AdminError``; arguments that no request can carry ``TypeError`` and
    ``ValueError``, before anything is asked. Close it after use.
    """

    async def api_versions(self, host_port: str) -> dict[int, tuple[int, int]]:
        """The version windows that one broker advertises, by API key."""
        address = parse_address(host_port)

        async def attempt() -> dict[int, tuple[int, int]]:
            return dict((await self._node(address)).windows)

        return await self._retrying(f"ApiVersions of {host_port}", attempt)

    async def metadata(self, topics: Sequence[str] | None = None) -> ClusterView:
        """Brokers, controller, and these topics (None: all) as they are now; topics carry their own error codes."""
        names = None if topics is None else checked_topics(topics)
        return await self._retrying("Metadata", lambda: self._metadata(names))

    async def describe(self, topics: Sequence[str]) -> dict[str, TopicView]:
        """These topics, as soon as every partition has a leader."""
        names = checked_topics(topics)

        async def attempt() -> dict[str, TopicView]:
            view = await self._metadata(names)
            for name in names:
                if name not in view.topics or not view.topics[name].is_ready:
                    raise Retriable(f"{name} is not ready")
            return {name: view.topics[name] for name in names}

        return await self._retrying(f"topics {', '.join(names)}", attempt)

    async def create_topics(self, topics: Sequence[NewTopic]) -> None:
        """Create topics. An existing topic is an error, unless an attempt of this very call may have created it."""
        wanted = [creatable(topic) for topic in checked_list(topics, "topics to be created")]
        outstanding = {topic.name: topic for topic in wanted}
        # Topics that a lost answer, or a timeout of the controller, may have left created.
        unsure: set[str] = set()

        async def attempt() -> None:
            names = set(outstanding)
            try:
                response = await self._ask_controller(
                    CreateTopicsRequest(topics=list(outstanding.values()), timeout_ms=self._request_timeout_ms)
                )
            except OSError:
                unsure.update(names)
                raise
            for result in response.topics:
                code = ErrorCode.of(result.error_code)
                if code is ErrorCode.NONE or (code is ErrorCode.TOPIC_ALREADY_EXISTS and result.name in unsure):
                    outstanding.pop(result.name, None)
                elif code is ErrorCode.REQUEST_TIMED_OUT:
                    unsure.add(result.name)
                elif not code.retriable:
                    raise AdminError(code, f"{result.name}: {result.error_message or 'not created'}")
            if outstanding:
                raise Retriable(f"not created: {', '.join(outstanding)}")

        await self._retrying("CreateTopics", attempt)
