"""The cluster of ``gapless up`` as manual faults see it.

Owns that view. Does not own the cluster itself (``chaos.conductor.deployment``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from chaos.conductor.deployment import Deployment
from chaos.conductor.manual_faults import ClusterFacts, FaultRefused
from chaos.conductor.observer import Observer
from chaos.conductor.starting import StartFailure
from chaos.faults.under_test import ClusterUnderTest
from verifier.evidence.run_directory import RunDirectory

ASK_TIMEOUT_MS = 5_000


class Deployed:
    """``Broken`` for a deployment. A paused broker counts as running.

    ``started`` is called when a broker runs that a request asked to start, before the request is answered.
    """

    def __init__(
        self,
        deployment: Deployment,
        observer: Observer,
        directory: RunDirectory,
        session_timeout_ms: int,
        *,
        behind_links: bool,
        started: Callable[[], object],
    ) -> None:
        self._deployment = deployment
        self._started = started
        self._observer = observer
        self._directory = directory
        self._session_timeout_ms = session_timeout_ms
        names, brokers = deployment.link_names, len(deployment.broker_ids)
        self.facts = ClusterFacts(names, brokers, session_timeout_ms, behind_links, deployment.has_fault_ports)

    async def topics(self) -> dict[str, int]:
        admin = self._observer.admin(ASK_TIMEOUT_MS)
        try:
            view = await admin.metadata()
        except TimeoutError as error:
            raise FaultRefused(f"no broker returned the list of topics: {error}") from error
        finally:
            await admin.close()
        return {name: len(topic.partitions) for name, topic in sorted(view.topics.items()) if topic.partitions}

    def target(self, topic: str, partitions: int) -> ClusterUnderTest:
        # Imported here: it loads the client of the proxy, for which the start of a cluster should not wait.
        from chaos.conductor.breakable_cluster import BreakableCluster

        observer, session_ms = self._observer.of_topic(topic), self._session_timeout_ms
        return BreakableCluster(self._deployment, observer, self._directory, topic, partitions, session_ms)

    @property
    def broker_ids(self) -> Collection[int]:
        return self._deployment.broker_ids

    def is_running(self, broker_id: int) -> bool:
        return self._deployment.process(broker_id).is_running() and not self._deployment.is_starting(broker_id)

    async def start(self, broker_id: int) -> None:
        from chaos.links import LinkError

        try:
            await self._deployment.restart(broker_id)
        except (LinkError, OSError) as error:
            raise StartFailure(f"broker {broker_id} did not come up: {error}") from error
        self._started()
