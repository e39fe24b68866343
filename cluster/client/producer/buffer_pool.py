"""buffer.memory: how much of it is taken, who waits for more, and in what order they get it.

Owns the account and, around it, the waiting of threads (Kafka's BufferPool). Does not own buffers: records are kept as
the bytes they came as and joined once, so there is nothing that could be reused, and Kafka's list of free buffers of
batch.size has no counterpart; what is counted is the same.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from cluster.client.producer.delivery import BufferExhausted, ProducerClosed, RecordTooLarge
from cluster.seams.units import seconds_of_ms


class MemoryClaim:
    """A caller that waits for ``size_bytes``, and what was put aside for them so far."""

    __slots__ = ("held_bytes", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.held_bytes = 0

    def __repr__(self) -> str:
        return f"MemoryClaim({self.held_bytes} of {self.size_bytes} bytes)"

    @property
    def is_met(self) -> bool:
        """Whether the memory is theirs."""
        return self.held_bytes == self.size_bytes


class MemoryAccount:
    """Who came first is served first: what becomes free is put aside for the first claim until that is met.

    So no one who came later passes, however little they want, and a large claim is met in the end. A claim is for a
    byte or more: what asks is a batch, which has a header at least. Pure and not thread-safe. ``available_bytes`` is
    what is neither taken nor put aside.
    """

    __slots__ = ("_claims", "available_bytes", "total_bytes")

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = self.available_bytes = total_bytes
        self._claims: deque[MemoryClaim] = deque()

    def __repr__(self) -> str:
        return f"MemoryAccount({self.available_bytes} of {self.total_bytes} bytes available, {self.waiting} waiting)"

    @property
    def waiting(self) -> int:
        """How many claims are not met."""
        return len(self._claims)

    def claim(self, size_bytes: int) -> MemoryClaim:
        """Ask for memory: the claim is met at once, or by a later ``release`` or ``withdraw``.

        Raises ``RecordTooLarge`` for more than there is in all.
        """
        self._check(size_bytes)
        claim = MemoryClaim(size_bytes)
        self._claims.append(claim)
        self._serve()
        return claim

    def try_claim(self, size_bytes: int) -> bool:
        """Ask for memory that is there for anyone who comes now; False, and no claim, if it is not. Raises the same."""
        self._check(size_bytes)
        if self._claims or size_bytes > self.available_bytes:
            return False
        self.available_bytes -= size_bytes
        return True

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self.total_bytes:
            raise RecordTooLarge.than(size_bytes, "buffer.memory", self.total_bytes)

    def release(self, size_bytes: int) -> list[MemoryClaim]:
        """Give back what a claim was met with. Returns the claims that this meets, in order."""
        self.available_bytes += size_bytes
        return self._serve()

    def withdraw(self, claim: MemoryClaim) -> list[MemoryClaim]:
        """A claim that is not met is abandoned, with what it held. Returns the claims that this meets, in order."""
        self._claims.remove(claim)
        return self.release(claim.held_bytes)

    def _serve(self) -> list[MemoryClaim]:
        met: list[MemoryClaim] = []
        while self._claims:
            claim = self._claims[0]
            given_bytes = min(self.available_bytes, claim.size_bytes - claim.held_bytes)
            self.available_bytes -= given_bytes
            claim.held_bytes += given_bytes
            if not claim.is_met:
                break
            met.append(self._claims.popleft())
        return met


class BufferPool:
    """The account, for threads: ``allocate`` waits for its turn. Safe from any thread; take no lock around it."""

    def __init__(self, total_bytes: int) -> None:
        self._account = MemoryAccount(total_bytes)
        self._lock = threading.Lock()
        self._waiters: dict[MemoryClaim, threading.Condition] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"BufferPool({self._account!r}{', closed' if self._closed else ''})"

    @property
    def total_bytes(self) -> int:
        """buffer.memory."""
        return self._account.total_bytes

    @property
    def available_bytes(self) -> int:
        """What no one has or waits for."""
        return self._account.available_bytes

    @property
    def waiting(self) -> int:
        """How many threads wait: if any does, what is there is sent without lingering."""
        return self._account.waiting

    def is_waited_for(self) -> bool:
        """Whether any thread waits."""
        return self._account.waiting > 0

    def try_allocate(self, size_bytes: int) -> bool:
        """Take ``size_bytes`` if that is possible without waiting, and no one waits.

        Raises ``RecordTooLarge`` and ``ProducerClosed`` as ``allocate`` does.
        """
        with self._lock:
            if self._closed:
                raise ProducerClosed("Producer closed while allocating memory")
            return self._account.try_claim(size_bytes)

    def allocate(self, size_bytes: int, max_block_ms: int, on_wait: Callable[[], object] | None = None) -> None:
        """Take ``size_bytes``, waiting for ``max_block_ms`` at most; ``on_wait`` is called once it is known that this
        waits, with a lock held.

        Raises ``BufferExhausted`` if that was too short, ``RecordTooLarge`` for more than there is in all, and
        ``ProducerClosed``.
        """
        with self._lock:
            if self._closed:
                raise ProducerClosed("Producer closed while allocating memory")
            claim = self._account.claim(size_bytes)
            if claim.is_met:
                return
            condition = self._waiters[claim] = threading.Condition(self._lock)
            try:
                if on_wait is not None:
                    on_wait()
                condition.wait_for(
                    lambda: claim.is_met or self._closed, min(seconds_of_ms(max_block_ms), threading.TIMEOUT_MAX)
                )
                if self._closed:
                    raise ProducerClosed("Producer closed while allocating memory")
                if not claim.is_met:
                    raise BufferExhausted.after(size_bytes, max_block_ms, self.total_bytes, self.available_bytes)
            except BaseException:
                # Also if the thread was interrupted: nothing is held by one who does not know of it.
                account = self._account
                self._wake(account.release(size_bytes) if claim.is_met else account.withdraw(claim))
                raise
            finally:
                del self._waiters[claim]

    def release(self, size_bytes: int) -> None:
        """Give back what was allocated."""
        with self._lock:
            self._wake(self._account.release(size_bytes))

    def close(self) -> None:
        """Refuse all waiting and future claims."""
        with self._lock:
            self._closed = True
            for condition in self._waiters.values():
                condition.notify()

    def _wake(self, met: list[MemoryClaim]) -> None:
        # A claim that was met at once has no one waiting.
        for claim in met:
            condition = self._waiters.get(claim)
            if condition is not None:
                condition.notify()
