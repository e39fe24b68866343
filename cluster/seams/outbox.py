"""What one socket connection still has to send, in order: bytes through asyncio, file ranges by sendfile.

Owns the order and the queue. Does not own the connection's life: it raises ``OSError`` and lets its owner abort.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from typing import cast

from cluster.seams.storage import Bytes, FileRange, Payload

#: Below this a range is read and sent with what stands around it: one system call less.
SENDFILE_LEAST_BYTES = 65_536
#: What is read from a file when the socket is full, so that the loop says when to go on.
_NUDGE_BYTES = 65_536
#: Parts smaller than this are joined into one write.
_JOIN_BYTES = 65_536


class Outbox:
    """The queue of one asyncio transport.

    asyncio must hold no bytes of its own when sendfile writes to the descriptor, so writing pauses as soon as it
    holds any: what follows waits here, uncopied, until ``resume``.
    """

    __slots__ = ("_corked", "_may_have_ranges", "_queue", "_queue_bytes", "_socket_fd", "_transport", "_writable")

    def __init__(self, transport: asyncio.Transport, socket_fd: int) -> None:
        self._transport = transport
        self._socket_fd = socket_fd
        self._queue: deque[Payload] = deque()
        self._queue_bytes = 0
        self._may_have_ranges = False
        self._writable = True
        self._corked = False
        transport.set_write_buffer_limits(high=0)

    def __repr__(self) -> str:
        return f"Outbox({self.queued_bytes} bytes{'' if self._writable else ', socket full'})"

    @property
    def queued_bytes(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self._queue_bytes + self._transport.get_write_buffer_size()

    @property
    def is_empty(self) -> bool:
        """Whether everything was handed to asyncio, which sends what it holds before it closes."""
        return not self._queue

    def put(self, parts: Sequence[Payload], size: int) -> int:
        """Queue the parts, of ``size`` bytes, send what the socket takes, and return about how many are queued.

        Raises ``OSError``, or ``ValueError`` for an unfit file.
        """
        self._may_have_ranges = True
        self._queue.extend(parts)
        self._queue_bytes += size
        return self._gathered()

    def put_bytes(self, data: bytes) -> int:
        """The same for one part that is no file's: most answers are, and the quickest way is theirs."""
        self._queue.append(data)
        self._queue_bytes += len(data)
        if self._corked and self._queue_bytes <= _JOIN_BYTES:
            return self._queue_bytes
        return self._gathered()

    def _gathered(self) -> int:
        if not self._corked or self._queue_bytes > _JOIN_BYTES:
            self._pump()
        return self.queued_bytes

    def cork(self) -> None:
        """Until ``uncork`` small answers only gather: one system call sends them all."""
        self._corked = True

    def uncork(self) -> None:
        """Send what has gathered. Raises like ``put``."""
        self._corked = False
        if self._queue:
            self._pump()

    def pause(self) -> None:
        """asyncio holds bytes that the socket did not take."""
        self._writable = False

    def resume(self) -> None:
        """The socket took everything. Raises like ``put``."""
        self._writable = True
        self._pump()

    def clear(self) -> None:
        """Drop what is queued."""
        self._queue.clear()
        self._queue_bytes = 0
        self._may_have_ranges = False

    def _pump(self) -> None:
        while self._queue and self._writable and not self._transport.is_closing():
            part = self._queue[0]
            if isinstance(part, FileRange) and part.size >= SENDFILE_LEAST_BYTES:
                self._send_range(part)
            else:
                data = self._take_bytes()
                self._queue_bytes -= len(data)
                self._transport.write(data)

    def _take_bytes(self) -> Bytes:
        """The next bytes to write: one buffer as it is, or many small parts joined."""
        if self._queue_bytes <= _JOIN_BYTES and not self._may_have_ranges:
            joined = b"".join(cast("deque[Bytes]", self._queue))
            self._queue.clear()
            return joined
        taken: list[Bytes] = []
        size = 0
        while self._queue and size < _JOIN_BYTES:
            part = self._queue[0]
            if isinstance(part, FileRange):
                if part.size >= SENDFILE_LEAST_BYTES:
                    break
                data: Bytes = _read(part, part.size)
            else:
                data = part
            if taken and size + len(data) > _JOIN_BYTES:
                break
            taken.append(data)
            size += len(data)
            self._queue.popleft()
        self._may_have_ranges = bool(self._queue)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def _send_range(self, part: FileRange) -> None:
        """Send the file range at the head of the queue as far as the socket takes it."""
        sent = 0
        descriptor = part.file.fileno()
        if descriptor is not None and self._transport.get_write_buffer_size() == 0:
            sent = self._sendfile(descriptor, part)
        self._queue.popleft()
        self._queue_bytes -= sent
        if sent == part.size:
            return
        # The socket is full, or there is no descriptor: a piece goes through asyncio, which says when to go on.
        piece = min(part.size - sent, _NUDGE_BYTES)
        rest = FileRange(part.file, part.position + sent, part.size - sent)
        data = _read(rest, piece)
        if rest.size > piece:
            self._queue.appendleft(FileRange(rest.file, rest.position + piece, rest.size - piece))
        self._queue_bytes -= piece
        self._transport.write(data)

    def _sendfile(self, descriptor: int, part: FileRange) -> int:
        sent = 0
        while sent < part.size:
            try:
                count = os.sendfile(self._socket_fd, descriptor, part.position + sent, part.size - sent)
            except BlockingIOError:
                break
            if count == 0:
                raise OSError(f"{part.file.path} ends {part.size - sent} bytes before a range that was promised")
            sent += count
        return sent


def _read(part: FileRange, size: int) -> bytes:
    data = part.file.pread(size, part.position)
    if len(data) != size:
        raise OSError(f"{part.file.path} ends {size - len(data)} bytes before a range that was promised")
    return data
