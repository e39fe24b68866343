"""Serves requests for manual faults in a cluster that is up. Owns the requests and the answers.

A request is one line of JSON: ``{"fault", "target", "duration_s"}``, or ``{"start": ID}`` to start a broker that died.
Answers are lines, too: ``{"said": TEXT}`` while things happen, then ``{"end": HOW, "text": TEXT}``. If the client
disconnects, the fault is healed at once. Does not inject or record faults (``chaos.conductor.injector``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from chaos.conductor.fixed_ports import CLIENTS
from chaos.conductor.injector import Injector, NotHealed
from chaos.conductor.starting import StartFailure
from chaos.conductor.telling_record import TellingRecord
from chaos.faults.base import Fault
from chaos.faults.catalogue import FAULTS, UnknownFault, check_faults
from chaos.faults.under_test import ClusterUnderTest
from chaos.schedules.model import Injection
from cluster.process.local_socket import listening
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from verifier.evidence.run_directory import RunDirectory

logger = logging.getLogger(__name__)

#: The values of ``end`` for a fault.
BIT, NO_BITE, CUT_SHORT, REFUSED, NOT_HEALED = "bit", "did not bite", "cut short", "refused", "not healed"
#: The value of ``end`` after an unexpected error.
FAILED = "failed"
#: The values of ``end`` for the start of a broker.
STARTED, NOT_STARTED = "started", "not started"
LONGEST_S = 3600.0
#: A fault on a coordinator takes one of these instead of a partition or a link. Whether it exists is checked later, by
#: the fault itself.
_COORDINATED = {"transactional_id": "a transactional ID", "group": "a group"}
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]{0,8})\Z")


class FaultRefused(ValueError):
    """The request cannot be carried out. The message names the reason and the alternatives."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """The injection that a request asks for, and the topic that its probes examine."""

    topic: str
    injection: Injection


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What decides whether a request is possible. ``links`` has the names of the links, ``brokers`` is their number.

    ``clients_behind_links`` and ``fault_ports`` say whether clients connect through links and brokers have fault ports.
    """

    links: Collection[str]
    brokers: int
    session_timeout_ms: int
    clients_behind_links: bool
    fault_ports: bool = False


def planned(request: Mapping[str, Any], topics: Mapping[str, int], cluster: ClusterFacts) -> PlannedFault:
    """The fault that a request asks for. ``topics`` maps names to numbers of partitions. Raises FaultRefused."""
    name, target, duration_s = str(request.get("fault")), request.get("target"), request.get("duration_s")
    try:
        check_faults([name])
    except UnknownFault as error:
        raise FaultRefused(str(error)) from error
    fault = FAULTS[name]
    if fault.needs_load is not None or fault.kills_load is not None:
        raise FaultRefused(f"{name} hits the load of a run; use 'gapless run --faults {name}'")
    if duration_s is None:
        duration_s = fault.usual_duration_s(cluster.session_timeout_ms)
    if not isinstance(duration_s, (int, float)) or not (math.isfinite(duration_s) and 0 < duration_s <= LONGEST_S):
        raise FaultRefused(f"--duration must be above 0 and at most {LONGEST_S:g} s, not {duration_s!r}")
    if not topics:
        raise FaultRefused(
            "the cluster has no topic yet, and probes need partitions: create a topic first (docs/up.md, Topics)"
        )
    key = next((each for each in _COORDINATED if each in fault.targets), None)
    if key is not None and target is not None and target not in cluster.links:
        topic, where = min(topics), {key: str(target)}
    else:
        topic, where = _topic_and_target(target, topics, cluster.links)
    if "link" in where and "link" not in fault.targets:
        takers = ", ".join(each.name for each in FAULTS.values() if "link" in each.targets)
        takes = "TOPIC-PARTITION" if key is None else _COORDINATED[key]
        raise FaultRefused(f"{name} takes {takes}, not the link {target!r}; {takers} take a link")
    if (why := _why_it_cannot_bite(fault, where, cluster)) is not None:
        raise FaultRefused(f"{name} cannot bite: {why}")
    return PlannedFault(topic, Injection(0.0, name, float(duration_s), where))


def _why_it_cannot_bite(fault: type[Fault], where: Mapping[str, Any], cluster: ClusterFacts) -> str | None:
    """Why the fault can never bite in this cluster, and how to change that; None if it can."""
    least = max(fault.least_brokers, fault.least_replicas)
    if cluster.brokers < least:
        return f"it needs {least} brokers, but there is {cluster.brokers}; start with 'gapless up --brokers {least}'"
    if fault.needs_fault_port and not cluster.fault_ports:
        return "the brokers have no fault ports; start with 'gapless up --breakable'"
    if _is_on_clients(fault, where) and not cluster.clients_behind_links:
        return "clients connect past the links that it breaks; start with 'gapless up --proxy'"
    return None


def _is_on_clients(fault: type[Fault], where: Mapping[str, object]) -> bool:
    link = str(where.get("link", ""))
    return link.startswith(f"{CLIENTS}-") if link else fault.hits_client_links


def _did_not_bite(injection: Injection, seen: str, *, was_injected: bool) -> str:
    """Why the fault did not bite, according to its probe (``seen``), and what would help.

    A fault on a link of clients shows only if clients use the link.
    """
    is_seen_by_clients = was_injected and _is_on_clients(FAULTS[injection.fault], injection.target)
    helps = "; it shows only in what clients send: keep a client running meanwhile" * is_seen_by_clients
    return f"{injection.fault} did not bite: {seen}{helps}"


def _topic_and_target(target: object, topics: Mapping[str, int], links: Collection[str]) -> tuple[str, dict[str, Any]]:
    first, given = min(topics), str(target)
    if target is None:
        return first, {"partition": 0}
    if given in links:
        return first, {"link": given}
    if given in topics:
        return given, {"partition": 0}
    match = _PARTITION.match(given)
    if match is not None and int(match["partition"]) < topics.get(match["topic"], 0):
        return match["topic"], {"partition": int(match["partition"])}
    partitions = ", ".join(f"{name}-0{f' to {name}-{count - 1}' * (count > 1)}" for name, count in topics.items())
    raise FaultRefused(f"there is no partition or link {given!r}; partitions: {partitions}; links: {', '.join(links)}")


class Broken(Protocol):
    """The cluster in which manual faults are injected."""

    @property
    def facts(self) -> ClusterFacts: ...

    async def topics(self) -> dict[str, int]:
        """Every topic with its number of partitions. Raises FaultRefused if no broker answers."""
        ...

    def target(self, topic: str, partitions: int) -> ClusterUnderTest:
        """The cluster as a fault sees it, with probes that examine this topic."""
        ...

    @property
    def broker_ids(self) -> Collection[int]: ...

    def is_running(self, broker_id: int) -> bool: ...

    async def start(self, broker_id: int) -> None:
        """Start a broker that died, with its data and its ports. Raises StartFailure."""
        ...


class ByHand:
    """Serves the requests for one cluster. Concurrent requests make concurrent faults."""

    def __init__(
        self,
        cluster: Broken,
        directory: RunDirectory,
        clock: Clock,
        storage: Storage,
        seed: int,
        note: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._directory = directory
        self._clock = clock
        self._storage = storage
        self._seed = seed
        self._note = note
        self._numbers = itertools.count()
        self._ending = asyncio.Event()
        self._working: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being served: a fault lasts or is being healed, or a broker is being started."""
        return bool(self._working)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve requests inside the ``with`` block, and at its end heal every lasting fault. Raises ``OSError``."""
        with listening(self._directory.path) as made:
            server = await asyncio.start_unix_server(self._serve, sock=made)
            try:
                yield
            finally:
                server.close()
                # not cancelled: asyncio logs the cancellation of a handler as an error
                self._ending.set()
                await asyncio.gather(*self._working, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._working.add(task)
            task.add_done_callback(self._working.discard)

        def tell(answer: Mapping[str, Any]) -> None:
            if not writer.is_closing():
                writer.write(json.dumps(answer).encode() + b"\n")

        try:
            try:
                request = json.loads(await reader.readline())
                tell(await self._until_gone(reader, request if isinstance(request, dict) else {}, tell))
            except (FaultRefused, ValueError, RecursionError) as refusal:
                tell({"end": REFUSED, "text": str(refusal)})
            except Exception as error:  # the client gets an answer, whatever went wrong
                logger.exception("a request failed")
                tell({"end": FAILED, "text": f"an unexpected error ended it: {error!r}"})
            with contextlib.suppress(OSError):
                await writer.drain()
        finally:
            writer.close()

    async def _until_gone(
        self, reader: asyncio.StreamReader, request: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Carry out the request and return the last answer. If the client disconnects first, heal the fault at once."""
        work = asyncio.create_task(self._work(request, tell))
        over = [asyncio.create_task(reader.read(1)), asyncio.create_task(self._ending.wait())]
        try:
            await asyncio.wait([work, *over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in over:
                each.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
        return {"end": CUT_SHORT, "text": "cut short, and healed"} if work.cancelled() else work.result()

    async def _work(self, request: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
        if "start" in request:
            return await self._start(request["start"])
        topics = await self._cluster.topics()
        plan = planned(request, topics, self._cluster.facts)
        target = self._cluster.target(plan.topic, topics[plan.topic])

        def note(text: str) -> None:
            self._note(text)
            tell({"said": text})

        lines = TellingRecord(self._storage, lambda text: tell({"said": text}))
        injector = Injector(target, self._clock, lines, str(self._directory.faults_jsonl), note)
        try:
            await injector.inject(self._seed, next(self._numbers), plan.injection)
        except NotHealed as error:
            return {"end": NOT_HEALED, "text": str(error)}
        finally:
            await injector.heal_all()
        last = injector.past[-1] if injector.past else None
        if last is None or last.effect != BIT:
            was_injected = last is not None and last.effect == NO_BITE
            seen = lines.missed(plan.injection.fault)
            return {"end": NO_BITE, "text": _did_not_bite(plan.injection, seen, was_injected=was_injected)}
        return {"end": BIT, "text": last.detail}

    async def _start(self, broker_id: object) -> dict[str, object]:
        brokers = self._cluster.broker_ids
        if isinstance(broker_id, bool) or not isinstance(broker_id, int) or broker_id not in brokers:
            raise FaultRefused(f"the cluster has no broker {broker_id}, it has {', '.join(map(str, sorted(brokers)))}")
        if self._cluster.is_running(broker_id):
            return {"end": STARTED, "text": f"broker {broker_id} was running"}
        try:
            await self._cluster.start(broker_id)
        except StartFailure as error:
            return {"end": NOT_STARTED, "text": str(error)}
        return {"end": STARTED, "text": f"broker {broker_id} runs"}
