"""The broker process: the real seams, defects if any were asked for, signals, and how its owner learns of it.

Owns everything around a ``Node`` that only a process has. It is the one module that knows of ``cluster.defects``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cluster.broker import config_store, server
from cluster.broker.coordinator_exposition import CoordinatorCollector
from cluster.broker.exposition import BrokerCollector, MetricsServer, NodeCollector
from cluster.broker.fault_port import breakable_seams
from cluster.broker.handlers import produce
from cluster.broker.long_turns import LongTurns
from cluster.broker.metrics import LoopLag
from cluster.broker.node import Node, Seams
from cluster.broker.rules import Rules
from cluster.config.broker import BrokerConfig, validate
from cluster.config.listeners import open_to_others
from cluster.defects import parse, with_defects, with_storage_defects
from cluster.defects.firings import Firings
from cluster.metadata.zookeeper import ZooKeeperStore
from cluster.process.arenas import give_back_memory
from cluster.process.child import ChildChannel
from cluster.process.garbage import Garbage
from cluster.process.one_line import log_to
from cluster.process.paced import Paced
from cluster.seams import asyncio_connection
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import Clock, SystemClock
from cluster.seams.descriptors import ENOUGH
from cluster.seams.os_storage import OsStorage, raise_open_file_limit
from cluster.seams.out_of_memory import halt_if_out_of_memory, halt_without_memory, watch
from cluster.seams.randomness import derive, fresh_seed
from cluster.seams.storage import Storage
from cluster.seams.turns import Turns
from cluster.seams.units import seconds_of_ns

logger = logging.getLogger(__name__)

LOG_FILE = "broker.log"
#: The name under which the metrics port is reported beside the listeners.
METRICS = "METRICS"
#: The same of the port by which experiments break this process.
FAULTS = "FAULTS"

#: For how long a thread off the event loop computes on while the loop waits for Python's lock, which it gives up for
#: each read, write and look for sockets: a turn that serves fifty has to get it back a hundred times. With three busy
#: threads such turns took 520 ms at Python's 5 ms, and take 110 ms at this; at a fifth of it, switching costs more.
THREAD_SWITCH_S = 0.001

#: The loggers of connections that are closed, of requests that are refused, of produces without acks that fail, and of
#: configurations that change.
CAUSED_BY_CLIENTS = (asyncio_connection.__name__, server.__name__, produce.__name__, config_store.__name__)

TellReady = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """What a broker process is started with. ``properties`` are Kafka's keys; ``defects`` like ``lose-acked:0.01``."""

    broker_id: int
    properties: Mapping[str, str]
    node_directory: str
    defects: Sequence[str] = ()
    seed: int = field(default_factory=fresh_seed)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> BrokerSpec:
        """From the JSON values of a Supervisor. Raises ``TypeError`` for others than the fields."""
        return cls(**{**arguments, "defects": tuple(arguments.get("defects", ()))})


class BrokerFailed(Exception):
    """The broker could not continue."""


class StoppedEarly(BrokerFailed):
    """The broker was asked to stop before it had started."""


def give_back(garbage: Garbage) -> None:
    """What is garbage, and then the memory that is free."""
    garbage.examine_all()
    give_back_memory()


async def run_broker(
    spec: BrokerSpec, ready: TellReady, stopping: asyncio.Event, long_turns: LongTurns, turns: Turns
) -> None:
    """Run one broker until ``stopping`` is set, then stop it in order.

    ``ready`` gets {"event": "bound", "ports": {listener: port}} and {"event": "started", "broker_epoch": N}. Raises
    what ``Node.start`` raises, ``ConfigError``, ``DefectError``, and ``BrokerFailed`` if the disk failed meanwhile.
    ``turns`` is the selector of the running loop; ``long_turns`` is told of the long ones.
    """
    # Opening thousands of logs makes no garbage, and each collection meanwhile would look at all that is there.
    gc.disable()
    config = validate({**spec.properties, "broker.id": str(spec.broker_id)})
    for warning in config.warnings:
        logger.warning("%s", warning)
    if (openness := open_to_others(config.inter_broker_listener_name, config.listeners)) is not None:
        # not of the configuration itself: it is the default, as in Kafka
        logger.warning("%s", openness)
    machine = OsStorage()
    machine.makedirs(spec.node_directory)
    storage, clock, fault_port = breakable_seams(config, spec.node_directory, machine)
    garbage = Garbage(asyncio.get_running_loop(), clock.monotonic_ns)
    rules, storage = _planted(spec, storage, clock)
    failure: list[Exception] = []

    def failed(error: Exception) -> None:
        failure.append(error)
        stopping.set()

    store = ZooKeeperStore(config.zookeeper_connect, config["zookeeper.session.timeout.ms"])
    seams = Seams(
        clock,
        derive(spec.seed, "broker", spec.broker_id),
        AsyncioTransport(turns),
        store,
        storage,
        give_back_memory=partial(give_back, garbage),
    )
    node = Node(config, rules, seams, spec.node_directory, failed)
    lag = LoopLag(asyncio.get_running_loop())
    long_turns.counters = node.counters
    metrics = _open_metrics(node, config, lag, long_turns)
    try:
        ports = await node.bind()
        more = {name: each.port for name, each in ((METRICS, metrics), (FAULTS, fault_port)) if each is not None}
        ready({"event": "bound", "ports": {**ports, **more}})
        logger.info("broker %d is bound to %s", spec.broker_id, ports)
        try:
            epoch = await _unless(stopping, node.start())
            if epoch is None:
                raise StoppedEarly("stopped before it had started")
            garbage.begin()
            ready({"event": "started", "broker_epoch": epoch})
            logger.info("broker %d is started, epoch %d", spec.broker_id, epoch)
            await stopping.wait()
        except BaseException as error:
            halt_if_out_of_memory(error)
            await node.stop(controlled=False)
            raise
        await node.stop(controlled=not failure)
    finally:
        garbage.end()
        lag.close()
        if metrics is not None:
            metrics.close()
        if fault_port is not None:
            fault_port.close()
    if failure:
        raise BrokerFailed(str(failure[0])) from failure[0]
    logger.info("broker %d has stopped", spec.broker_id)


async def _unless(stopping: asyncio.Event, work: Coroutine[Any, Any, int]) -> int | None:
    """The result of ``work``, or None if it was abandoned because ``stopping`` was set first."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        waiting.cancel()
        working.cancel()
        await asyncio.gather(waiting, working, return_exceptions=True)


def _planted(spec: BrokerSpec, storage: Storage, clock: Clock) -> tuple[Rules, Storage]:
    """The rules and the storage, with the defects that were asked for."""
    specs = [parse(text) for text in spec.defects]
    if not specs:
        return Rules(), storage
    logger.warning("defects are planted: %s", ", ".join(map(str, specs)))
    firings = Firings(spec.node_directory, spec.broker_id, storage, clock)
    random = derive(spec.seed, "defects", spec.broker_id)
    return with_defects(Rules(), specs, random, firings), with_storage_defects(storage, specs, random, firings)


def _open_metrics(node: Node, config: BrokerConfig, lag: LoopLag, long_turns: LongTurns) -> MetricsServer | None:
    port = config["gapless.metrics.port"]
    if port < 0:
        return None

    def gauges() -> dict[str, float]:
        longest_s = seconds_of_ns(long_turns.longest_ns)
        return {"event_loop_lag_seconds": lag.worst_s(), "event_loop_longest_turn_seconds": longest_s}

    counters = BrokerCollector(node.counters, gauges)
    of_node = NodeCollector(node, config["gapless.metrics.max.partitions"])
    collectors = [counters, of_node, CoordinatorCollector(node, SystemClock().wall_ms)]
    try:
        return MetricsServer(collectors, port, config["gapless.metrics.host"])
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"gapless.metrics.port={port}") from error


def _run(spec: BrokerSpec, ready: TellReady) -> None:
    """Run a broker in this process until SIGTERM."""
    halt_without_memory()
    most = raise_open_file_limit()
    logger.info("broker %d may have %d files open", spec.broker_id, most)
    if 0 <= most < ENOUGH:
        logger.warning(
            "the limit of open files is %d (ulimit -n): below %d, few segments and connections have room", most, ENOUGH
        )

    async def main() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch(loop)
        loop.add_signal_handler(signal.SIGTERM, stopping.set)
        await run_broker(spec, ready, stopping, long_turns, turns)

    sys.setswitchinterval(THREAD_SWITCH_S)
    long_turns = LongTurns()
    turns = Turns(long_turns.note)
    with asyncio.Runner(loop_factory=turns.loop) as runner:
        runner.run(main())


def log_paced(handler: logging.Handler) -> None:
    """Log to ``handler``, of what clients can cause without end a few lines at a time."""
    handler.addFilter(Paced(CAUSED_BY_CLIENTS))
    log_to(handler, force=True)


def serve(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """The entry for the Supervisor; ``arguments`` are the fields of ``BrokerSpec``.

    A failure is told to the owner as {"event": "failed", "error": text}, and the exit status is 1.
    """
    spec = BrokerSpec.from_arguments(arguments)
    OsStorage().makedirs(spec.node_directory)
    log_paced(logging.FileHandler(f"{spec.node_directory}/{LOG_FILE}", encoding="utf-8"))
    try:
        _run(spec, channel.ready)
    except Exception as error:
        halt_if_out_of_memory(error)
        logger.exception("broker %d failed: %s", spec.broker_id, error)
        channel.ready({"event": "failed", "error": f"{type(error).__name__}: {error}"})
        sys.exit(1)


def serve_alone(spec: BrokerSpec) -> None:
    """A broker by itself, for containers and other hosts: its ports go to standard output, one JSON line an event."""
    log_paced(logging.StreamHandler(sys.stderr))

    def ready(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    _run(spec, ready)
