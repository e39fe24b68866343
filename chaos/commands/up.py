"""``gapless up``: a cluster for Kafka clients, without load; faults are manual (``gapless fault``).

The cluster is the same that runs break. Clients reach its control listeners, or with ``--proxy`` producers' links.
Owns starting it, in the foreground or detached, and the messages about it. Does not own its state file (``up_state``).
"""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos.commands.preflight import check_outside, check_port
from chaos.commands.received import check_continued
from chaos.commands.up_nodes import write_nodes
from chaos.commands.up_state import DATA, MODULE, STATE, Data, announcement, on, other_brokers, running, state_of
from chaos.commands.up_watch import StateWatch
from chaos.conductor.deployed import Deployed
from chaos.conductor.deployment import Deployment
from chaos.conductor.fixed_ports import FixedPorts
from chaos.conductor.manual_faults import ByHand
from chaos.conductor.observer import Observer
from chaos.conductor.starting import StartFailure
from chaos.exits import BadRequest, Exit
from chaos.experiment.asked import Asked
from chaos.experiment.experiment import Experiment
from chaos.experiment.resolve import resolve
from chaos.schedules.swarms import SWARMS
from cluster.process.one_line import printable, reason
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from verifier.evidence.run_directory import RunDirectory, write_json_atomic

MOST_PORT = 65_535
DETACHED_START_S = 90.0
#: The file for the output of a detached cluster after its announcement.
LOG = "up.log"
#: The time between two checks for brokers that exited or returned.
LOOK_S = 1.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up", help="Start a cluster for Kafka clients and run in the foreground until Ctrl-C.")(up)


def up(
    brokers: Annotated[int, typer.Option(help="Number of brokers.")] = 3,
    profile: Annotated[str, typer.Option(help="kafka (Kafka's defaults) or chaos (short timeouts).")] = "kafka",
    broker_config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Broker configuration; repeatable.")
    ] = None,
    zookeeper: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="An existing ZooKeeper.")] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=MOST_PORT, help="First broker's port; the others follow. 0: free ports."),
    ] = 0,
    metrics_port: Annotated[
        int,
        typer.Option(min=0, max=MOST_PORT, help="First broker's metrics port; the others follow. 0: free ports."),
    ] = 0,
    proxy: Annotated[bool, typer.Option("--proxy", help="Put clients behind links that faults can cut.")] = False,
    breakable: Annotated[
        bool, typer.Option("--breakable", help="Let faults break the brokers' disks and clocks.")
    ] = False,
    data: Data = DATA,
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with bootstrap.servers.")] = False,
    defect: Annotated[
        list[str] | None, typer.Option(help="Plant a known bug in the brokers: NAME[:probability].")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only bootstrap.servers; warnings and errors go to stderr.")
    ] = False,
) -> int:
    """Start, announce, wait."""
    if profile in SWARMS:
        raise BadRequest(f"--profile {profile} is a swarm, for 'gapless run --swarm'; use kafka or chaos")
    asked = Asked(
        seed=0,
        brokers=brokers,
        replication_factor=min(3, brokers),
        faults="none",
        profile=profile,
        broker_config=tuple(broker_config or ()),
        zookeeper=zookeeper,
        defects=tuple(defect or ()),
    )
    try:
        settings, warnings = resolve(asked)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    if running(data) is not None:
        raise BadRequest(f"a cluster is already running with {data / STATE}; stop it with '{on('down', data)}'")
    try:
        check_ports(brokers, {"--port": port, "--metrics-port": metrics_port})
        check_outside(settings)
        directory = _directory(data)
        if (others := other_brokers(directory.broker_ids(), brokers, data)) is not None:
            warnings.append(others)
        if detach:
            return _detach(data, as_json=as_json, quiet=quiet)
        for warning in warnings:
            _note(f"warning: {warning}")
        fault = 0 if breakable else -1
        ports = FixedPorts(port, metrics_port, behind_links=proxy, fault=fault)
        return _serve(settings, data, ports, as_json=as_json, quiet=quiet)
    except KeyboardInterrupt:
        # Typer would end the command without printing a line
        _note("gapless: interrupted")
        return int(Exit.INTERRUPTED)


def _directory(data: Path) -> RunDirectory:
    """Create the directory of the cluster and prepare it. Raises BadRequest."""
    directory = RunDirectory(data.resolve())
    try:
        directory.path.mkdir(parents=True, exist_ok=True)
        check_continued(directory.path)
        # only this one, because there is no history without a load
        directory.nodes_dir.mkdir(exist_ok=True)
        return directory
    except OSError as error:
        raise BadRequest(f"the directory {data} cannot be used: {reason(error)}; see --data") from error


def _serve(settings: Experiment, data: Path, ports: FixedPorts, *, as_json: bool, quiet: bool) -> int:
    """Run a cluster until it is told to stop. Raises BadRequest if it does not start."""
    directory = RunDirectory(data.resolve())
    observer = Observer(AsyncioTransport(), SystemClock(), settings.topic)
    with Supervisor(str(directory.path), lambda _: None) as supervisor:
        deployment = Deployment(settings, directory, supervisor, observer, ports)
        serving = _Serving(deployment, observer, settings, data, behind_links=ports.behind_links)
        try:
            status = asyncio.run(serving.run(as_json, quiet))
        finally:
            (data / STATE).unlink(missing_ok=True)
    if status == Exit.VALID and not quiet:
        _note(f"stopped; its data is kept in {data}")
    return status


def check_ports(brokers: int, first: Mapping[str, int]) -> None:
    """Raises BadRequest, before anything starts, if another process has one of the requested ports."""
    for option, port in first.items():
        if port + brokers - 1 > MOST_PORT:
            raise BadRequest(
                f"{option} {port} leaves too few ports for {brokers} brokers, the last one is {MOST_PORT}; "
                f"give at most {option} {MOST_PORT - brokers + 1}"
            )
    users: dict[int, str] = {}
    asked: dict[int, str] = {}
    for option, port in first.items():
        for broker, each in enumerate(range(port, port + brokers) if port else (), 1):
            asked[each] = f"{option} {port}" if broker == 1 else f"{option} {port}: port {each}, of broker {broker}"
            if (other := users.setdefault(each, option)) != option:
                raise BadRequest(
                    f"cannot bind {asked[each]}: {other} {first[other]} takes it too; keep them {brokers} apart, or "
                    "leave one out for free ports"
                )
    for port, what in asked.items():
        check_port(what, port, "pick another, or leave it out for free ports")


class _Serving:
    """A cluster from its start to its end."""

    def __init__(
        self, deployment: Deployment, observer: Observer, settings: Experiment, data: Path, *, behind_links: bool
    ) -> None:
        self._deployment, self._observer = deployment, observer
        self._data, self._behind_links = data, behind_links
        self._creates_topics = settings.broker_config["auto.create.topics.enable"]
        session_ms = settings.broker_config["zookeeper.session.timeout.ms"]
        directory = RunDirectory(data.resolve())
        cluster = Deployed(
            deployment, observer, directory, session_ms, behind_links=behind_links, started=self._written_again
        )
        self._by_hand = ByHand(cluster, directory, SystemClock(), OsStorage(), settings.asked.seed, _note)

    async def run(self, as_json: bool, quiet: bool) -> int:
        """Run until SIGINT or SIGTERM; returns the exit status. Raises BadRequest if the cluster does not start."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stop.set)
        starting = asyncio.create_task(self._deployment.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait([starting])
            _note("gapless: interrupted before the cluster was up")
            return int(Exit.INTERRUPTED)
        try:
            starting.result()
        except StartFailure as error:
            hint = "; pick another --port" if "address already in use" in str(error) else ""
            raise BadRequest(f"{error}{hint}") from error
        async with self._by_hand.open():
            announced = self._written()
            if as_json:
                print(json.dumps(announced), flush=True)
            else:
                _announce(announced, self._data, quiet=quiet)
                if not quiet:
                    _note("up; Ctrl-C stops it")
            watching = asyncio.create_task(self._watch(announced))
            await stopping
            watching.cancel()
        await self._deployment.stop()
        return int(Exit.VALID)

    def _written(self) -> dict[str, Any]:
        state = self._state()
        write_json_atomic(self._data / STATE, state)
        write_nodes({each["id"]: each["pid"] for each in state["brokers"]}, self._data.resolve())
        return state

    def _written_again(self) -> None:
        """Write the state file at once, so that the client that started a broker can read its process id."""
        try:
            self._written()
        except OSError as error:
            _note(f"warning: {self._data / STATE} does not name the broker's new process: {reason(error)}")

    def _state(self) -> dict[str, Any]:
        links, creates = self._behind_links, self._creates_topics
        return state_of(self._deployment, self._observer, behind_links=links, creates_topics=creates)

    async def _watch(self, written: dict[str, Any]) -> None:
        """Keep the state file present and up to date, and report brokers that exit unexpectedly."""
        watch = StateWatch(self._deployment, self._data / STATE, written, self._state, self._written, _note)
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._by_hand.is_busy:
                watch.look()


def _note(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def _announce(state: Mapping[str, Any], data: Path, *, quiet: bool) -> None:
    lines = [printable(line) for line in announcement(state, data)]
    print("\n".join(lines[:1] if quiet else lines), flush=True)


def _detach(data: Path, *, as_json: bool, quiet: bool) -> int:
    """Start the same command in the background and wait for its announcement."""
    argv = [sys.executable, "-m", MODULE, *(word for word in sys.argv[1:] if word != "--detach")]
    if "--json" not in argv:
        argv.append("--json")
    with (data / LOG).open("w+b") as errors:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        try:
            with child.stdout or io.StringIO() as output:
                line = output.readline()
        except KeyboardInterrupt:
            child.terminate()
            child.wait(DETACHED_START_S)
            raise
        # the child outlives this process on purpose; this keeps Python from warning about that
        code = 0 if line else child.wait(DETACHED_START_S)
        child.returncode = code
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if not line:
        print("\n".join(map(printable, said[-3:])) or "gapless: the cluster did not come up", file=sys.stderr)
        return code or int(Exit.HARNESS_FAILED)
    for each in said:
        _note(each)
    if as_json:
        print(printable(line.rstrip()))
        return int(Exit.VALID)
    _announce(json.loads(line), data, quiet=quiet)
    if not quiet:
        _note(f"up in the background; see '{on('status', data)}' and '{on('down', data)}'")
    return int(Exit.VALID)
