"""The admin client of commands that ask a cluster about its groups and transactions.

Owns which cluster is meant, the options that say so, the one line and the exit status for what it refuses, and tables.
Does not own what is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.runs.command import table
from chaos.commands.up_state import STATE, nothing_up, on, running
from chaos.exits import BadRequest, Exit
from cluster.client import Admin, AdminError
from cluster.config.errors import ConfigError
from cluster.process.one_line import printable
from verifier.evidence.run_directory import read_json

#: How long a command waits for the cluster.
TIMEOUT_MS = 15_000
#: The largest numbers that fit into the fields of requests.
MOST_LONG, MOST_INT, MOST_SHORT = 2**63 - 1, 2**31 - 1, 2**15 - 1
#: The keys in the state file for the addresses of clients and of brokers.
CLIENTS, BROKERS = "bootstrap.servers", "peers"

ServerOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,...", help="Brokers to contact first. [dim]default: the cluster of 'gapless up'[/dim]"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@contextmanager
def admin_of(
    bootstrap_server: str | None,
    data: Path,
    reason: Callable[[AdminError | TimeoutError], str] = str,
    listener: str = CLIENTS,
) -> Iterator[Admin]:
    """An admin client for the chosen cluster, at this listener. A refusal prints a line and ends with exit status 1."""
    servers = _servers(data, listener) if bootstrap_server is None else bootstrap_server
    try:
        admin = Admin(
            {"bootstrap.servers": servers, "default.api.timeout.ms": TIMEOUT_MS, "client.id": "gapless-admin"}
        )
    except ConfigError as error:
        raise BadRequest(f"--bootstrap-server: {error}") from error
    with admin:
        try:
            yield admin
        except (AdminError, TimeoutError) as error:
            print(printable(f"gapless: {reason(error)}{_way_out(error, bootstrap_server, data)}"), file=sys.stderr)
            raise typer.Exit(int(Exit.INVALID)) from error


def _way_out(error: Exception, bootstrap_server: str | None, data: Path) -> str:
    """What to check if the cluster did not answer in time; "" for any other error."""
    if not isinstance(error, TimeoutError):
        return ""
    if bootstrap_server is None:
        return f"; see '{on('status', data)}'"
    return f"; are the brokers of --bootstrap-server {bootstrap_server} up?"


def _servers(data: Path, listener: str) -> str:
    if running(data) is None:
        raise BadRequest(f"{nothing_up(data)}; or name a cluster with --bootstrap-server")
    try:
        return str(read_json(data / STATE)[listener])
    except (OSError, ValueError, KeyError) as error:
        raise BadRequest(f"{data / STATE} cannot be read: {error}; name the cluster with --bootstrap-server") from error


@contextmanager
def sendable(option: str) -> Iterator[None]:
    """Turn a value of ``option`` that does not fit into a request into a BadRequest."""
    try:
        yield
    except ValueError as error:
        raise BadRequest(f"{option}: {error}") from error


def print_table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows below their headings. None stands for an unknown value."""
    lines = [tuple(map(str.upper, heads)), *(tuple(map(_cell, row)) for row in rows)]
    print("\n".join(map(printable, table(lines))))


def status_with_missing(what: str, missing: Sequence[str], command: str) -> int:
    """Print a line for each missing name; returns the exit status. ``command`` lists the names that exist."""
    for each in missing:
        print(printable(f"gapless: there is no {what} {each}; 'gapless {command}' shows all"), file=sys.stderr)
    return int(Exit.INVALID if missing else Exit.VALID)


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
