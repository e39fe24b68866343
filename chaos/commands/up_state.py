"""``up.json``, the state file of a cluster that is up: its content, and the check whether its process still runs.

Owns the form of the file, and sending requests to the process. ``gapless up`` writes the file; ``status``, ``down``,
``fault`` and ``start`` read it. Does not start or stop a cluster (``up``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from chaos.commands.up_nodes import NODES
from chaos.conductor.deployment import Deployment
from chaos.conductor.fixed_ports import CLIENTS
from chaos.conductor.observer import Observer
from cluster.process import invocation
from cluster.process.invocation import command
from cluster.process.local_socket import connect, peer_pid
from verifier.evidence.run_directory import read_json

STATE = "up.json"
#: A broker's log, in its directory.
BROKER_LOG = "broker.log"
DATA = Path("results/up")
MODULE = "chaos.commands.main"
#: How long the process that listens on the socket of a directory may take to be connected to.
LISTENER_TIMEOUT_S = 2.0

Data = Annotated[Path, typer.Option(help="Directory of the brokers' data and the state file.")]


def state_of(deployment: Deployment, observer: Observer, *, behind_links: bool, creates_topics: bool) -> dict[str, Any]:
    """The object in ``up.json`` and of ``up --json``: addresses of clients, peers, metrics and proxy, and brokers."""
    me = psutil.Process()
    direct = ",".join(observer.control_addresses())
    return {
        "bootstrap.servers": deployment.topology.bootstrap(CLIENTS) if behind_links else direct,
        "peers": ",".join(deployment.topology.listeners[each]["PEERS"] for each in deployment.broker_ids),
        "zookeeper.connect": deployment.zookeeper_address,
        "metrics": observer.metrics_urls(),
        "proxy": deployment.topology.proxy,
        "creates_topics": creates_topics,
        "brokers": [_broker(deployment, each, behind_links) for each in deployment.broker_ids],
        "pid": me.pid,
        "creation_time": me.create_time(),
    }


def _broker(deployment: Deployment, broker_id: int, behind_links: bool) -> dict[str, Any]:
    process, topology = deployment.process(broker_id), deployment.topology
    direct = topology.listeners[broker_id]
    return {
        "id": broker_id,
        "address": topology.address(CLIENTS, f"b{broker_id}") if behind_links else direct["CONTROL"],
        "metrics": f"http://{direct['METRICS']}/metrics",
        "pid": process.pid,
        "creation_time": process.creation_time,
    }


def announcement(state: Mapping[str, Any], data: Path) -> Iterator[str]:
    """The announcement for the user, line by line."""
    servers = str(state["bootstrap.servers"])
    yield f"bootstrap.servers={servers}"
    kcat = f"kcat -b {servers.split(',')[0]}"
    read_back = f"echo hello | {kcat} -P -t hello && {kcat} -C -t hello -o beginning -e"
    yield f"try: {read_back if state['creates_topics'] else f'{kcat} -L'}"
    if not state["creates_topics"]:
        yield "topics: created on request only; see docs/up.md, or use --broker-config auto.create.topics.enable=true"
    for url in state["metrics"]:
        yield f"metrics: {url}"
    judging = command(["run", "--target", f"kafka://{servers}", "--nodes", str(data / NODES)])
    yield f"judge it: {judging}"
    yield f"data: {data}, kept when the cluster stops; the next '{on('up', data)}' serves it again"


def other_brokers(existing: Sequence[int], brokers: int, data: Path) -> str | None:
    """A warning if the directory has data of another number of brokers than are started; None otherwise."""
    if not existing or list(existing) == list(range(1, brokers + 1)):
        return None
    fewer = (
        "the partitions on the others lack those replicas"
        if brokers < len(existing)
        else "the new ones are still empty"
    )
    return (
        f"{data} holds the data of {len(existing)} brokers and {brokers} {'is' if brokers == 1 else 'are'} started: "
        f"{fewer}; "
        f"use --brokers {len(existing)}, or another --data"
    )


def on(name: str, data: Path, *options: str) -> str:
    """A command line that the user can paste: this command, for the cluster of this directory."""
    return command([name, *options, *([] if data == DATA else ["--data", str(data)])])


def nothing_up(data: Path) -> str:
    """The line for a command that needs a cluster, if none is up."""
    return (
        f"no cluster is running in {data} (it has no {STATE} of a live one); start one with "
        f"'{on('up', data, '--detach')}', or name another directory with --data"
    )


def running(data: Path) -> psutil.Process | None:
    """The process of the cluster of this directory; None if it is gone.

    The state file has its pid and creation time. Without one, it is the process that listens on the socket. Either may
    be any process: it must be ours, and one that was started to be the cluster of this directory.
    """
    return _told_by_file(data) or _behind_socket(data)


def ask(request: Mapping[str, object], data: Path) -> Iterator[dict[str, object]]:
    """What the cluster of this directory answers, line by line (``chaos.conductor.manual_faults``). Raises OSError."""
    with connect(data) as connection, connection.makefile("rwb") as stream:
        stream.write(json.dumps(request).encode() + b"\n")
        stream.flush()
        yield from map(json.loads, stream)


def _told_by_file(data: Path) -> psutil.Process | None:
    try:
        state = read_json(data / STATE)
        process = psutil.Process(int(state["pid"]))
        return process if process.create_time() == state["creation_time"] and _serves(process, data) else None
    except (OSError, OverflowError, ValueError, TypeError, KeyError, psutil.Error):
        return None


def _behind_socket(data: Path) -> psutil.Process | None:
    try:
        with connect(data, LISTENER_TIMEOUT_S) as connection:
            process = psutil.Process(peer_pid(connection))
        return process if _serves(process, data) else None
    except (OSError, ValueError, psutil.Error):
        return None


def _serves(process: psutil.Process, data: Path) -> bool:
    is_ours = process.uids().real == os.getuid()
    return is_ours and _data_of(process.cmdline(), Path(process.cwd())) == data.resolve()


def _data_of(words: Sequence[str], where: Path) -> Path | None:
    """The directory of the cluster that this command line starts in the working directory ``where``; None if none."""
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
