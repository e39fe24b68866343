"""``gapless status`` and ``gapless down``: what the cluster of a directory is doing, and its end."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from chaos.commands.up_state import BROKER_LOG, DATA, STATE, Data, nothing_up, on, running
from chaos.conductor.observer import scrape
from chaos.exits import BadRequest, Exit
from cluster.process.one_line import printable
from cluster.process.processes import find, is_alive
from verifier.evidence.run_directory import read_json

UNDER_REPLICATED = "gapless_under_replicated_partitions"
STOP_TIMEOUT_S = 60


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("status", help="Show the status of a running cluster. Exit status: 0 if all brokers run, 1 if not.")(
        status
    )
    app.command("down", help="Stop a running cluster. Its data is kept.")(down)


def status(
    data: Data = DATA,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the state file and under-replicated partitions as JSON.")
    ] = False,
) -> int:
    """Print who runs and who does not, and how many partitions lack a replica."""
    process = running(data)
    if process is None:
        print(printable(nothing_up(data)), file=sys.stderr)
        return int(Exit.INVALID)
    try:
        state = read_json(data / STATE)
    except (OSError, ValueError):
        lost = f"the cluster of {data} runs (pid {process.pid}) without its {STATE}; stop it with '{on('down', data)}'"
        print(printable(lost), file=sys.stderr)
        return int(Exit.INVALID)
    lacking = {url: _under_replicated(url) for url in state.get("metrics", [])}
    states = {each["id"]: _doing(each) for each in state.get("brokers", [])}
    if as_json:
        print(json.dumps({**state, "under_replicated_partitions": lacking}, indent=2))
    else:
        print("\n".join(map(printable, lines(state, states, lacking, data))))
    return int(Exit.VALID if all(doing == "running" for doing in states.values()) else Exit.INVALID)


def lines(
    state: Mapping[str, Any], states: Mapping[int, str], lacking: Mapping[str, int | None], data: Path
) -> Iterator[str]:
    """The same in words. Pure."""
    running_now = sum(doing == "running" for doing in states.values())
    yield f"{running_now} of {len(states)} brokers run (gapless up: pid {state['pid']}, data: {data})"
    yield f"bootstrap.servers={state['bootstrap.servers']}"
    for broker in state.get("brokers", []):
        doing = states[broker["id"]]
        more = _more(broker, doing, lacking, data)
        yield f"broker {broker['id']}  {broker['address']}  pid {broker['pid']}  {doing}{more}"


def _more(broker: Mapping[str, Any], doing: str, lacking: Mapping[str, int | None], data: Path) -> str:
    if doing != "running":
        return f"; its log: {data / 'nodes' / str(broker['id']) / BROKER_LOG}"
    count = lacking.get(broker["metrics"])
    if count is None:
        return ", does not respond"
    return f", {count} of its partitions lack{'s' * (count == 1)} a replica" if count else ", all replicas in sync"


def _doing(broker: Mapping[str, Any]) -> str:
    """``running``, ``paused`` (SIGSTOP) or ``dead``."""
    process = find(int(broker["pid"]), float(broker["creation_time"]))
    try:
        if process is None or not is_alive(process):
            return "dead"
        return "paused" if process.status() == psutil.STATUS_STOPPED else "running"
    except psutil.Error:
        return "dead"


def _under_replicated(url: str) -> int | None:
    """The number of under-replicated partitions that this broker leads; None if its metrics do not answer."""
    samples = scrape(url)
    return None if samples is None else int(sum(value for _, value in samples.get(UNDER_REPLICATED, [])))


def down(data: Data = DATA) -> int:
    """Ask the cluster to stop and wait until it has."""
    if data != DATA and not data.exists():
        raise BadRequest(f"--data {data}: there is no such directory")
    process = running(data)
    if process is None:
        with contextlib.suppress(NotADirectoryError):
            (data / STATE).unlink(missing_ok=True)
        print(printable(nothing_up(data)), file=sys.stderr)
        return int(Exit.VALID)
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except psutil.TimeoutExpired:
        print(f"the cluster (pid {process.pid}) did not stop within {STOP_TIMEOUT_S} s", file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    print(printable(f"stopped; its data is in {data}"), file=sys.stderr)
    return int(Exit.VALID)
