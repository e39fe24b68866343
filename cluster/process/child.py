"""The child's side of a supervised Python process: its first steps, its channel to the owner, and its lifeline.

Owns what runs inside the child before and beside its target. The owner's side is ``cluster.process.handle``.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cluster.process.arenas import share_arenas
from cluster.process.log_files import open_log
from cluster.process.one_line import guard_last_resort

#: Exit status of a child whose owner went away.
EXIT_ORPHANED = 113

#: How long code that waits for ``ChildChannel.closed`` has before the process ends.
LAST_WORDS_S = 0.5


class MessagePipe(Protocol):
    """What is used of ``multiprocess.connection.MessagePipe``."""

    def send_bytes(self, buf: bytes) -> None: ...

    def recv_bytes(self) -> bytes: ...

    def poll(self, timeout: float) -> bool: ...

    def close(self) -> None: ...


class ChildChannel:
    """A child's way to its owner. When the owner goes, ``closed`` is set and the process ends within a second."""

    def __init__(self, connection: MessagePipe) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.closed = threading.Event()

    def __repr__(self) -> str:
        return f"ChildChannel(closed={self.closed.is_set()})"

    def ready(self, message: Mapping[str, Any]) -> None:
        """Send one message (JSON values) to the owner, who gets it from ``Child.wait_message``.

        Does nothing when the owner is gone: this process is about to end.
        """
        data = json.dumps(message).encode()
        with self._sending:
            try:
                self._connection.send_bytes(data)
            except OSError:
                self.closed.set()

    def receive(self) -> dict[str, Any]:
        """The next message (JSON values) that the owner sent with ``Child.send``; waits until there is one.

        Not for the end of the owner: that ends this process.
        """
        message: dict[str, Any] = json.loads(self._received.get())
        return message

    def watch(self) -> None:
        """Begin to watch the lifeline, in a thread of its own."""
        threading.Thread(target=self._watch, name="lifeline", daemon=True).start()

    def _watch(self) -> None:
        try:
            while True:
                self._received.put(self._connection.recv_bytes())
        except (EOFError, OSError):
            pass
        self.closed.set()
        threading.Event().wait(LAST_WORDS_S)
        os._exit(EXIT_ORPHANED)


def run_child(connection: MessagePipe, target: str, log_path: str | None, marker: str) -> None:
    """The entry of every supervised Python child: imports ``module:function``, waits for its arguments, calls it.

    It begins with SIGINT, SIGTERM and SIGHUP blocked (inherited from the start), leaves the owner's session, so that a
    Ctrl-C at the terminal never reaches it, sends its output to its log, begins to watch the lifeline, and only then
    lets signals in: SIGINT and SIGHUP are ignored, SIGTERM ends it until the target sets a handler.
    """
    if os.getsid(0) != os.getpid():
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Descendants of this child are told apart from those of the owner itself.
    os.environ[marker] = "child"
    if log_path is not None:
        _redirect(log_path)
    guard_last_resort()
    faulthandler.enable()
    channel = ChildChannel(connection)
    # before there is a second thread: the C library asks once how many heaps there may be
    share_arenas()
    channel.watch()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # What a module makes when it is imported stays: a collection meanwhile, or ever, would find next to nothing in it,
    # and takes a sixth of the time that the import takes.
    gc.disable()
    function = resolve(target)
    gc.freeze()
    gc.enable()
    function(channel.receive(), channel)


def _redirect(log_path: str) -> None:
    """Standard output and error to the log, standard input from nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = open_log(log_path)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(nothing)


def split_target(target: str) -> tuple[str, str]:
    """The two parts of ``module:function``. Raises ``ValueError``: only what a fresh interpreter can import will do."""
    module, _colon, function = target.partition(":")
    if not (module and function.isidentifier()):
        raise ValueError(f"a target is named module:function, not {target!r}")
    return module, function


def resolve(target: str) -> Callable[[dict[str, Any], ChildChannel], None]:
    """The function that ``target`` names. Raises ``ValueError``, ``ImportError`` or ``AttributeError``."""
    module, function = split_target(target)
    found: Callable[[dict[str, Any], ChildChannel], None] = getattr(importlib.import_module(module), function)
    return found
