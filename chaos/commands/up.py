"""``gapless up``, ``status``, ``down``: a cluster for any client, without load, faults or proxies' toxics.

Owns the state file of a detached cluster. The cluster is the same that runs break, on its control listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import psutil
import typer

from chaos.commands import invocation
from chaos.commands.preflight import check_outside
from chaos.conductor.deployment import Deployment, StartFailure
from chaos.conductor.observer import Observer, scrape
from chaos.exits import BadRequest, Exit
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from cluster.process.one_line import printable, reason
from cluster.process.supervisor import Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from verifier.evidence.run_directory import RunDirectory, read_json, write_json_atomic

STATE = "up.json"
MOST_PORT = 65_535
DATA = Path("results/up")
MODULE = "chaos.commands.main"
DETACHED_START_S = 90.0
UNDER_REPLICATED = "gapless_under_replicated_partitions"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("up", help="Start a cluster for any client and stay in the foreground until Ctrl-C.")(up)
    app.command("status", help="Say what a detached cluster is doing.")(status)
    app.command("down", help="Stop a detached cluster.")(down)


Data = Annotated[Path, typer.Option(help="Where the brokers' data and the state file are.")]


def up(
    brokers: Annotated[int, typer.Option(help="Broker processes.")] = 3,
    profile: Annotated[str, typer.Option(help="kafka (Kafka's defaults) or chaos (short timeouts).")] = "kafka",
    broker_config: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Repeatable.")] = None,
    zookeeper: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Use this ZooKeeper.")] = None,
    port: Annotated[
        int, typer.Option(min=0, max=MOST_PORT, help="The first broker's port, the others follow; 0 picks free ones.")
    ] = 0,
    data: Data = DATA,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is up; see status and down.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object with bootstrap.servers.")] = False,
    defect: Annotated[list[str] | None, typer.Option(help="Switch wrong logic on: NAME[:probability].")] = None,
) -> int:
    """Start, announce, wait."""
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
    if port + brokers - 1 > MOST_PORT:
        raise BadRequest(
            f"--port {port} leaves no ports for {brokers} brokers, the last one is {MOST_PORT}; "
            f"give at most --port {MOST_PORT - brokers + 1}"
        )
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if _running(data) is not None:
        raise BadRequest(f"a cluster is up already with {data / STATE}; stop it with 'gapless down --data {data}'")
    check_outside(settings)
    if detach:
        return _detach(data)
    try:
        directory = RunDirectory(data.resolve())
        directory.path.mkdir(parents=True, exist_ok=True)
        directory.prepare()
    except OSError as error:
        raise BadRequest(f"the directory {data} cannot be used: {reason(error)}; see --data") from error
    clock = SystemClock()
    observer = Observer(AsyncioTransport(), clock, settings.topic)
    with Supervisor(str(directory.path), lambda _: None) as supervisor:
        deployment = Deployment(settings, directory, supervisor, observer, first_port=port)
        try:
            return asyncio.run(_serve(deployment, observer, data / STATE, as_json))
        finally:
            (data / STATE).unlink(missing_ok=True)


async def _serve(deployment: Deployment, observer: Observer, state: Path, as_json: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    starting = asyncio.create_task(deployment.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return int(Exit.UNKNOWN)
    try:
        starting.result()
    except StartFailure as error:
        hint = "; choose another --port" if "address already in use" in str(error) else ""
        raise BadRequest(f"{error}{hint}") from error
    me = psutil.Process()
    announced = {
        "bootstrap.servers": ",".join(observer.control_addresses()),
        "zookeeper.connect": deployment.zookeeper_address,
        "metrics": observer.metrics_urls(),
        "pid": me.pid,
        "creation_time": me.create_time(),
    }
    write_json_atomic(state, announced)
    if as_json:
        print(json.dumps(announced), flush=True)
    else:
        print(f"bootstrap.servers={announced['bootstrap.servers']}", flush=True)
        for url in observer.metrics_urls():
            print(f"metrics: {url}", flush=True)
        print("up; Ctrl-C stops it", file=sys.stderr)
    await stopping
    await deployment.stop()
    return int(Exit.VALID)


def _detach(data: Path) -> int:
    """Start the same command in the background and wait until it has announced itself."""
    argv = [sys.executable, "-m", MODULE, *(word for word in sys.argv[1:] if word != "--detach")]
    if "--json" not in argv:
        argv.append("--json")
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=data) as errors:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        with child.stdout or io.StringIO() as output:
            line = output.readline()
        if line:
            print(printable(line.rstrip()))
            # It lives on by itself; this object must not complain that it does.
            child.returncode = 0
            return int(Exit.VALID)
        code = child.wait(DETACHED_START_S)
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    print("\n".join(map(printable, lines[-3:])) or "gapless: the cluster did not come up", file=sys.stderr)
    return code or int(Exit.HARNESS_FAILED)


def _running(data: Path) -> psutil.Process | None:
    """The process of a detached cluster, by pid and creation time; None if it is gone.

    The file may name any process: it must be ours, and one that was started to be the cluster of this directory.
    """
    try:
        state = read_json(data / STATE)
        process = psutil.Process(int(state["pid"]))
        is_same = process.create_time() == state["creation_time"] and process.uids().real == os.getuid()
        return process if is_same and _data_of(process.cmdline(), Path(process.cwd())) == data.resolve() else None
    except (OSError, OverflowError, ValueError, TypeError, KeyError, psutil.Error):
        return None


def _data_of(words: Sequence[str], where: Path) -> Path | None:
    """The directory of the cluster that this command line, given ``where``, brings up; None if it brings none up."""
    at = next((at for at, word in enumerate(words) if word == MODULE or Path(word).name == invocation.NAME), None)
    if at is None or words[at + 1 : at + 2] != ["up"]:
        return None
    data = str(DATA)
    for word, value in zip(words, [*words[1:], ""], strict=True):
        if word == "--data":
            data = value
        elif word.startswith("--data="):
            data = word.partition("=")[2]
    return (where / data).resolve()


def status(data: Data = DATA) -> int:
    """Print the state file of a live cluster, and how many of its partitions lack a replica."""
    if _running(data) is None:
        print(_none_is_up(data), file=sys.stderr)
        return int(Exit.INVALID)
    state = read_json(data / STATE)
    lacking = {url: _under_replicated(url) for url in state.get("metrics", [])}
    print(json.dumps({**state, "under_replicated_partitions": lacking}, indent=2))
    return int(Exit.VALID)


def _none_is_up(data: Path) -> str:
    where = f" --data {data}" if data != DATA else ""
    return (
        f"no cluster is up in {data} (it has no {STATE} of a live one); start one with 'gapless up --detach{where}', "
        "or name another directory with --data"
    )


def _under_replicated(url: str) -> int | None:
    """Partitions led by the broker with these metrics whose in-sync set lacks a replica; None if it does not answer."""
    samples = scrape(url)
    return None if samples is None else int(sum(value for _, value in samples.get(UNDER_REPLICATED, [])))


def down(data: Data = DATA) -> int:
    """Ask the detached cluster to stop and wait until it has."""
    process = _running(data)
    if process is None:
        with contextlib.suppress(NotADirectoryError):
            (data / STATE).unlink(missing_ok=True)
        print(_none_is_up(data), file=sys.stderr)
        return int(Exit.VALID)
    process.terminate()
    try:
        process.wait(60)
    except psutil.TimeoutExpired:
        print(f"the cluster (pid {process.pid}) did not stop within 60 s", file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    return int(Exit.VALID)
