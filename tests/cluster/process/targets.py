"""What the supervised children of these tests run. Module-level, so that a fresh interpreter can import them."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from cluster.process.child import ChildChannel


def announce(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Say who we are, and stay."""
    sys.stdout.write("announced\n")
    sys.stdout.flush()
    channel.ready({"event": "bound", "echo": arguments, "session": os.getsid(0), "pid": os.getpid()})
    time.sleep(600)


def listen(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Hold a listening port."""
    server = socket.create_server(("127.0.0.1", 0))
    channel.ready({"event": "bound", "port": server.getsockname()[1]})
    time.sleep(600)


def refuse_to_end(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Ignore SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel.ready({"event": "bound"})
    while True:
        time.sleep(600)


def end_in_order(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """End on SIGTERM, and write down when."""

    def end(signum: int, frame: object) -> None:
        sys.stdout.write(f"ended {time.monotonic_ns()}\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    channel.ready({"event": "bound"})
    while True:
        time.sleep(600)


def fail(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Die of an error before the first message."""
    raise RuntimeError("this child fails")


def leave_last_words(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Send a message and end at once."""
    channel.ready({"event": "failed", "error": "no port"})


def start_a_stray(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Start a program in a session of its own, which nobody told the Supervisor about."""
    stray = subprocess.Popen(["sleep", "600"], start_new_session=True)
    channel.ready({"event": "bound", "stray": stray.pid})
    time.sleep(600)


def limit_memory_and_wait(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """Let the address space grow to so much only."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**33, most))
    channel.ready({"event": "bound"})
    time.sleep(600)
