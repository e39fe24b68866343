"""A port on the loopback address that takes a line of JSON and answers with one; and its client. Blocks.

Owns the form. A connection whose first line is not a JSON request is closed. An HTTP request line is not JSON, so no
web page can ask for anything.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cluster.seams.out_of_memory import halt_if_out_of_memory

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
_MOST_BYTES = 4096
_IDLE_S = 60.0

#: Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is no request.
JsonAnswer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class JsonPort:
    """Serves from its making until ``close``. Raises ``OSError`` if the port is taken."""

    def __init__(self, answer: JsonAnswer, port: int) -> None:
        self._server = _JsonServer((HOST, port), partial(_JsonHandler, answer))
        self._thread = threading.Thread(target=self._server.serve_forever, name="json port", daemon=True)
        self._thread.start()
        self.port: int = self._server.server_address[1]

    def __repr__(self) -> str:
        return f"JsonPort({self.port})"

    def close(self) -> None:
        """Accept nothing anymore."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=1)


def ask_json(address: str, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any] | None:
    """The response of ``host:port``; None if nothing answers, because the process has ended. Raises ``OSError``."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline()
    return json.loads(line) if line.endswith(b"\n") else None


class _JsonServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """The server continues without this connection, unless there is no memory."""
        halt_if_out_of_memory(sys.exc_info()[1])
        super().handle_error(request, client_address)


class _JsonHandler(socketserver.StreamRequestHandler):
    """One connection, and any number of requests."""

    timeout = _IDLE_S

    def __init__(self, answer: JsonAnswer, *arguments: Any) -> None:
        self._answer = answer
        super().__init__(*arguments)

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the client has gone
            while line := self.rfile.readline(_MOST_BYTES):
                try:
                    told = self._answer(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    logger.warning("closed a connection that asks for nothing there is: %r", error)
                    return
                self.wfile.write(json.dumps(told).encode() + b"\n")
