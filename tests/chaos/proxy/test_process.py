"""The proxy as a process: supervised, and by its coroutine until a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import multiprocess
import pytest

from chaos.proxy.server import serve
from tests.chaos.proxy.harness import HOST, Api

pytestmark = [pytest.mark.timeout(30), pytest.mark.integration]


class PipeChannel:
    """A ready channel over a pipe."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def ready(self, message: dict[str, Any]) -> None:
        self._pipe.send(message)


def test_a_supervised_child_reports_its_port_and_ends_on_sigterm() -> None:
    """ready({"event": "bound", "port": N}), then service, then SIGTERM and exit status 0."""
    context = multiprocess.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = {"host": HOST, "port": 0, "seed": 3}
    process = context.Process(target=serve, args=(arguments, PipeChannel(theirs)))
    process.start()
    try:
        assert ours.poll(20)
        message = ours.recv()
        assert message["event"] == "bound"
        api = Api(message["port"])
        api.create("p", 1)
        assert api.ok("GET", "/gapless/stats")["seed"] == 3
        os.kill(process.pid, signal.SIGTERM)
        process.join(10)
        assert process.exitcode == 0
    finally:
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
        ours.close()
        theirs.close()


_PROGRAM = """
import asyncio, sys
from chaos.proxy.server import run
asyncio.run(run("127.0.0.1", 0, 1, lambda port: print(port, flush=True), populate=sys.argv[1].encode()))
"""


def test_run_populates_and_ends_on_sigint() -> None:
    """The proxies of a configuration exist before the port is reported; SIGINT ends it orderly and silently."""
    populate = '[{"name":"zk","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}]'
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "dev", "-c", _PROGRAM, populate],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            api = Api(int(process.stdout.readline()))
            assert list(api.ok("GET", "/proxies")) == ["zk"]
        finally:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
