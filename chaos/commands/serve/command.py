"""``gapless serve``: its options, and how long it serves. Ensures that only this machine can connect."""

from __future__ import annotations

import ipaddress
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.serve.application import ServeApplication
from chaos.exits import BadRequest, Exit
from cluster.hosts import GuardedWsgi
from cluster.process.one_line import printable, reason
from cluster.seams.clock import SystemClock
from cluster.seams.http_port import HttpPort

DEFAULT_PORT = 8080
DEFAULT_HOST = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", help="Show stored and live runs and sweeps as local web pages, until Ctrl-C.")(serve)


def serve(
    results: Annotated[Path, typer.Option("--results", help="The results directory.")] = Path("results"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the pages; 0: a free port.")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="A loopback address; any other is refused.")] = DEFAULT_HOST,
) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    check_loopback(host)
    if not results.is_dir():
        raise BadRequest(f"there is no directory {results}; create a run with 'gapless run', or pass another --results")
    # block signals before the port is announced, so that one that comes at once is handled below
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        pages = HttpPort(GuardedWsgi(ServeApplication(results.resolve(), SystemClock())), port, host)
    except OSError as error:
        raise BadRequest(f"{host}:{port} cannot be used: {reason(error)}; pick another --port") from error
    shown = f"[{host}]" if ":" in host else host
    print(printable(f"serving {results} at http://{shown}:{pages.port}/ until Ctrl-C"), file=sys.stderr, flush=True)
    try:
        signal.sigwait(signals)
    finally:
        pages.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    return int(Exit.VALID)


def check_loopback(host: str) -> None:
    """Raises BadRequest for an address that other machines could reach, and for a name, which may resolve to one."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise BadRequest(
            f"--host {host} is not a loopback address: these pages have no access control. Serve at {DEFAULT_HOST}, "
            f"and connect from elsewhere through a tunnel: ssh -L {DEFAULT_PORT}:{DEFAULT_HOST}:{DEFAULT_PORT} HOST"
        )
