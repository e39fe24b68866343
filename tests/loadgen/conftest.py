"""A mock cluster for the tests that need a broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOPIC = "gapless-load"
CHECKOUT = Path(__file__).resolve().parents[2]


class MockCluster:
    """librdkafka's mock cluster of one broker, in a process of its own; ``bootstrap`` is its address."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.loadgen.mock_cluster", "1", TOPIC],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.bootstrap = self.process.stdout.readline().strip()
        assert self.bootstrap, "the mock cluster did not start"

    def freeze(self) -> None:
        """No request is answered from now on, no connection closed."""
        self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    one = MockCluster()
    yield one
    one.close()
