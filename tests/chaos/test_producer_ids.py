"""What the conductor notes of the producer ids that were handed out."""

from __future__ import annotations

import asyncio

import pytest

from chaos.conductor.producer_ids import producer_ids_below
from cluster.metadata import zookeeper
from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import ConnectionLostError, NoNodeError
from cluster.metadata.znodes import ProducerIdBlockNode


class Store:
    """A store with one node, or with an error in its place."""

    closed = 0

    def __init__(self, content: bytes | Exception) -> None:
        self._content = content

    def __call__(self, hosts: str, session_timeout_ms: int) -> Store:
        assert hosts == "somewhere:2181"
        return self

    async def start(self, timeout_ms: int) -> None:
        if isinstance(self._content, TimeoutError):
            raise self._content

    async def get(self, path: str) -> tuple[bytes, None]:
        assert path == PRODUCER_ID_BLOCK
        if isinstance(self._content, Exception):
            raise self._content
        return self._content, None

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("content", "below"),
    [
        (ProducerIdBlockNode(2, 1000, 1999).encode(), 2000),
        (b"", 0),
        (NoNodeError(), 0),
        (b"nonsense", None),
        (ConnectionLostError(), None),
        (TimeoutError(), None),
    ],
)
def test_the_end_of_the_newest_block(monkeypatch: pytest.MonkeyPatch, content: bytes | Exception, below: int) -> None:
    """Ids are below its end; without a block there are none; what cannot be asked is not known. The session ends."""
    store = Store(content)
    monkeypatch.setattr(zookeeper, "ZooKeeperStore", store)
    assert asyncio.run(producer_ids_below("somewhere:2181")) == below
    assert store.closed == 1
