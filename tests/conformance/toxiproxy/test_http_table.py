"""Every call of the captured session with the real server, in its order, with its status, headers and exact body."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.proxy.harness import HOST, Answer
from tests.conformance.toxiproxy.conftest import Backend
from tests.conformance.toxiproxy.deltas import ABSENT, DELTAS, LOGGER

pytestmark = pytest.mark.timeout(30)

_CAPTURE = Path(__file__).with_name("capture.jsonl")
_FIXED_PORT = re.compile(r"\b21[0-9]{3}\b")
#: Ports that the server chose; the first time one is seen it stands for whatever is there.
_CHOSEN_PORTS = ("45101", "36703")
#: Below those that Linux hands out, and apart from those of the capture.
_PORTS = range(22_000, 32_000)
_BODY_TEXT = re.compile(r'(bad request body: ).*?(","status")')


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _CAPTURE.read_text().splitlines()]


@contextlib.contextmanager
def held_ports(texts: list[str]) -> Iterator[dict[str, str]]:
    """A port for each fixed one of the capture, bound here so that nobody else gets it; servers can still listen.

    They lie below those that the system hands out: a server that asks for any port may be given one that is bound, but
    not listened on.
    """
    with contextlib.ExitStack() as stack:
        free = _free_ports(stack)
        fixed = sorted({port for text in texts for port in _FIXED_PORT.findall(text)})
        yield dict(zip(fixed, free, strict=False))


def _free_ports(stack: contextlib.ExitStack) -> Iterator[str]:
    for number in range(len(_PORTS)):
        port = _PORTS[(os.getpid() + 11 * number) % len(_PORTS)]
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((HOST, port))
        except OSError:
            holder.close()
            continue
        stack.enter_context(holder)
        yield str(port)


class Session:
    """Walks the capture: replaces its ports by the ones of this run and compares."""

    def __init__(self, backend: Backend, ports: dict[str, str]) -> None:
        self._backend = backend
        self._ports = ports
        self._chosen: dict[str, str] = {}

    def here(self, text: str) -> str:
        text = _FIXED_PORT.sub(lambda match: self._ports[match[0]], text)
        for captured, actual in self._chosen.items():
            text = text.replace(captured, actual)
        return text

    def expected(self, row: dict[str, Any]) -> dict[str, Any]:
        if not self._backend.ours:
            return row
        row = row | DELTAS.get((row["section"], row["name"]), {})
        answer = row.get("answer", "").replace(LOGGER, "")
        for text in ABSENT:
            answer = answer.replace(text, "")
        return row | {"answer": answer}

    def check(self, row: dict[str, Any]) -> list[str]:
        """The differences of one row."""
        if row["name"] == "cleanup":
            for name in self._backend.api.ok("GET", "/proxies"):
                self._backend.api.call("DELETE", "/proxies/" + name.replace("/", "%2F").replace(" ", "%20"))
        row = self.expected(row)
        answer = self._backend.api.call(row["method"], row["path"], self.here(row["body"]), row.get("agent", "test"))
        found: list[tuple[str, object]] = [("status", answer.status)]
        wanted: list[tuple[str, object]] = [("status", row["status"])]
        if "content_type" in row:
            found += [
                ("content type", answer.headers.get("content-type")),
                ("request id", "x-toxiproxy-request-id" in answer.headers),
                ("location", answer.headers.get("location")),
            ]
            wanted += [
                ("content type", row["content_type"]),
                ("request id", row["request_id"]),
                ("location", row.get("location")),
            ]
            self._learn(row["answer"], answer)
            found.append(("body", self._comparable(answer.body.decode())))
            wanted.append(("body", self._comparable(self.here(row["answer"]))))
        return [
            f"{row['section']} / {row['name']}: {left} is not {right}"
            for left, right in zip(found, wanted, strict=True)
            if left != right
        ]

    def _learn(self, captured: str, answer: Answer) -> None:
        for port in _CHOSEN_PORTS:
            if port in captured and port not in self._chosen:
                listen = str(answer.json()["listen"])
                self._chosen[port] = listen.rpartition(":")[2]

    def _comparable(self, body: str) -> str:
        """Texts of Go's decoder differ between Go versions: they count only for our server."""
        return body if self._backend.ours else _BODY_TEXT.sub(r"\1\2", body)


def test_every_captured_call(backend: Backend) -> None:
    """Each of the 142 calls is answered as the real server answered it, but for the deltas listed."""
    captured = rows()
    assert len(captured) == 142
    with held_ports([json.dumps(row) for row in captured]) as ports:
        session = Session(backend, ports)
        differences = [line for row in captured for line in session.check(row)]
    assert not differences, "\n".join(differences)


def test_deltas_name_captured_rows() -> None:
    """A delta that matches no row would hide nothing and explain nothing."""
    assert set(DELTAS) <= {(row["section"], row["name"]) for row in rows()}


def test_errors_forbid_sniffing(backend: Backend) -> None:
    """Errors are text/plain with nosniff, as Go's http.Error writes them, though the body is JSON."""
    answer = backend.api.call("GET", "/proxies/none")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json() == {"error": "proxy not found", "status": 404}


def test_head_is_not_allowed(backend: Backend) -> None:
    """HEAD on a known path is 405 with no body, no Allow."""
    answer = backend.api.call("HEAD", "/proxies")
    assert (answer.status, answer.body) == (405, b"")
    assert "allow" not in answer.headers
