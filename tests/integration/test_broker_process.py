"""One broker process on its own: how it fails, and that it can be stopped before it has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.process.supervisor import Child, Supervisor

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

#: Nobody listens there.
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(str(tmp_path)) as running:
        yield running


def start(supervisor: Supervisor, directory: Path, **changes: Any) -> Child:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": NOWHERE,
        "zookeeper.connection.timeout.ms": "30000",
        "log.dirs": str(directory / "data"),
        **changes.pop("properties", {}),
    }
    arguments = {"broker_id": 1, "properties": properties, "node_directory": str(directory / "node"), **changes}
    return supervisor.start_python("broker", "cluster.broker.main:serve", arguments, str(directory / "output"))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"properties": {"replica.lag.tme.max.ms": "1"}}, "did you mean 'replica.lag.time.max.ms'?"),
        ({"defects": ["lose-aked"]}, "did you mean 'lose-acked'?"),
        ({"properties": {"listeners": "PLAINTEXT://127.0.0.1:1"}}, "ermission"),
    ],
    ids=["configuration", "defect", "port"],
)
def test_a_broker_that_cannot_start_says_why(
    supervisor: Supervisor, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    """One message to its owner, exit status 1."""
    if changes.get("properties", {}).get("listeners") and os.geteuid() == 0:
        changes = {"properties": {"listeners": "PLAINTEXT://192.0.2.1:9", "inter.broker.listener.name": "PLAINTEXT"}}
        text = "annot assign"
    child = start(supervisor, tmp_path, **changes)
    message = child.wait_message(20)
    assert message["event"] == "failed"
    assert text in message["error"]
    assert child.wait(10) == 1


def test_a_broker_without_zookeeper_can_be_stopped(supervisor: Supervisor, tmp_path: Path) -> None:
    """SIGTERM while it still looks for ZooKeeper: it ends at once, and not as if it had ended well."""
    child = start(supervisor, tmp_path)
    assert child.wait_message(20)["event"] == "bound"
    child.terminate()
    assert child.wait(10) == 1


def test_a_broker_gives_up_on_zookeeper(supervisor: Supervisor, tmp_path: Path) -> None:
    """After zookeeper.connection.timeout.ms, with the address in the text."""
    child = start(supervisor, tmp_path, properties={"zookeeper.connection.timeout.ms": "1000"})
    assert child.wait_message(20)["event"] == "bound"
    message = child.wait_message(20)
    assert message["event"] == "failed"
    assert NOWHERE in message["error"]
    assert child.wait(10) == 1
