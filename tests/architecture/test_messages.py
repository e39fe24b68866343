"""Messages end in the handlers (``cluster.broker.handlers``): what executes takes and returns values."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.sources import Module, imports, modules, within

#: Where classes of messages come from, and the layouts of requests.
MESSAGES = (
    "cluster.protocol.messages",
    "cluster.protocol.message_classes",
    "cluster.protocol.interbroker",
    "cluster.protocol.kafka_schemas",
    "cluster.broker.handlers",
)
#: Rooms that are made of messages: the wire itself, and who asks.
MADE_OF_MESSAGES = ("cluster.protocol", "cluster.client", "cluster.broker.handlers")
#: Who else knows a message, and why. What executes is not here.
KNOWING = {
    "cluster.broker.answering": "decodes and encodes around the handlers",
    "cluster.broker.api_table": "names the class of a request beside its handler",
    "cluster.broker.control.links.alter_partition": "lays out what a leader asks the controller",
    "cluster.broker.control.links.channels": "sends what the controller tells, and reads what brokers answer",
    "cluster.broker.control.links.controller_client": "asks the controller",
    "cluster.broker.control.links.messages": "makes what the controller tells brokers",
    "cluster.broker.control.links.peers": "hands a request on, whichever it is",
    "cluster.broker.main": "sets a limit of Produce at start-up",
    "cluster.broker.metadata_cache": "keeps the thousands of partitions of UpdateMetadata as they are read, once",
    "cluster.broker.node": "wires the handlers, and has the controller's requests to this broker in process",
    "cluster.broker.portions": "asks how large an answer is, whichever it is",
    "cluster.broker.replicas.fetcher": "asks leaders",
    "cluster.broker.server": "reads headers",
    "cluster.broker.transactions.marker_links": "asks leaders and coordinators",
}


def knowing(judged: Iterable[Module]) -> set[str]:
    """Modules, outside of the rooms that are made of messages, that import one."""
    return {
        module.name
        for module in judged
        if not any(within(module.name, room) for room in MADE_OF_MESSAGES)
        for each in imports(module)
        if any(within(each.target, source) for source in MESSAGES)
    }


def test_what_executes_knows_no_message() -> None:
    """Versions and layouts end in the handlers, so that what executes is tested without any."""
    assert knowing(modules("cluster")) == set(KNOWING)


@pytest.mark.parametrize(
    ("room", "text", "is_found"),
    [
        (
            "cluster.broker.control.controller",
            "from cluster.protocol.message_classes import AlterPartitionRequest",
            True,
        ),
        ("cluster.broker.control.office", "from cluster.protocol import message_classes", True),
        ("cluster.coordinator.group", "def late():\n    import cluster.protocol.messages", True),
        ("cluster.log", "from cluster.broker.handlers.produce import handle", True),
        ("cluster.controller", "from cluster.protocol.errors import ErrorCode", False),
        ("cluster.broker.handlers", "from cluster.protocol.message_classes import AlterPartitionRequest", False),
    ],
)
def test_an_executor_that_takes_a_message_is_found(room: str, text: str, is_found: bool) -> None:
    """Planted: a new module of a room, with one import."""
    name = f"{room}.planted"
    assert knowing([Module(name, Path("planted.py"), ast.parse(text), 1)]) == ({name} if is_found else set())
