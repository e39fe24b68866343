"""The backends that the suite runs against: our server always, the real toxiproxy-server when it can be found."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chaos.proxy.harness import HOST, Api, our_server, wait_until


@dataclass(frozen=True)
class Backend:
    """One server under test."""

    name: str
    api: Api

    @property
    def ours(self) -> bool:
        return self.name == "gapless"


def _real_server() -> str | None:
    return os.environ.get("TOXIPROXY_SERVER") or shutil.which("toxiproxy-server")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.fixture(params=["gapless", "toxiproxy"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A fresh server of each kind."""
    if request.param == "gapless":
        with our_server() as api:
            yield Backend("gapless", api)
        return
    binary = _real_server()
    if binary is None:
        pytest.skip("no toxiproxy-server on PATH, and TOXIPROXY_SERVER is not set")
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen([binary, "-host", HOST, "-port", str(port)], stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or _listens(port), "toxiproxy-server listens")
            assert process.poll() is None
            yield Backend("toxiproxy", Api(port))
        finally:
            process.terminate()
