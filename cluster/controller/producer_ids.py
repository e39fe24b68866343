"""Producer ids from blocks: the controller's next block and a broker's use of its own. Pure (ZkProducerIdManager).

An id that was handed out is never handed out again; ids that are lost with a block (a broker died, an answer was lost)
are a gap, which is normal. Who writes ``/latest_producer_id_block``, and how, is the control plane's.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1
#: The share of a block after which the next one is asked for.
PREFETCH_PERCENT = 90


class ProducerIdsExhausted(Exception):
    """The next block would pass 2^63 - 1."""


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Ids ``first_id .. first_id + size - 1``."""

    first_id: int
    size: int = BLOCK_SIZE

    @property
    def last_id(self) -> int:
        return self.first_id + self.size - 1


def next_block(latest_last_id: int | None) -> ProducerIdBlock:
    """The block after the newest one (``None``: there is none yet). Raises ProducerIdsExhausted."""
    if latest_last_id is None:
        return ProducerIdBlock(0)
    if latest_last_id > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ProducerIdsExhausted(f"the newest block ends at {latest_last_id}; another would pass {MAX_PRODUCER_ID}")
    return ProducerIdBlock(latest_last_id + 1)


class ProducerIdSupply:
    """One broker's blocks: the one in use and the one fetched ahead."""

    def __init__(self) -> None:
        self._current: ProducerIdBlock | None = None
        self._next_id = 0
        self._ahead: ProducerIdBlock | None = None

    def __repr__(self) -> str:
        return f"ProducerIdSupply(current={self._current}, next_id={self._next_id}, ahead={self._ahead})"

    def take(self) -> int | None:
        """The next id, or None while none is at hand."""
        if self._current is None or self._next_id > self._current.last_id:
            if self._ahead is None:
                return None
            self._current, self._ahead = self._ahead, None
            self._next_id = self._current.first_id
        taken = self._next_id
        self._next_id += 1
        return taken

    @property
    def wants_block(self) -> bool:
        """Whether the next block is to be asked for: none is in use, or 90 % of the one in use is handed out."""
        if self._ahead is not None:
            return False
        if self._current is None:
            return True
        return self._next_id - self._current.first_id >= self._current.size * PREFETCH_PERCENT // 100

    def add(self, block: ProducerIdBlock) -> None:
        """Take in a block that was asked for. Raises ValueError on a second one in advance: one request at a time."""
        if self._ahead is not None:
            raise ValueError(f"a block is fetched already: {self._ahead}")
        self._ahead = block
