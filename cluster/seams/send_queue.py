"""What one socket connection still has to send, in order: bytes as they are, file ranges by sendfile.

Owns the order, the queue and the wait for room in the socket. Does not own the connection's life: it raises ``OSError``
and lets its owner abort.

It writes to the descriptor itself, so that nothing is ever held by asyncio, which would have to be waited for before a
file can follow; asyncio only reads, opens and closes. A range of a file stays one until the socket has room for it: a
peer that does not read costs no memory but its place in the queue, and no time, since the loop says when there is room.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cluster.seams.descriptors import Share
from cluster.seams.storage import Bytes, FileRange, Payload

#: Below this a range is read and sent with what stands around it: one system call less.
SENDFILE_LEAST_BYTES = 65_536
#: The most that is gathered from several parts for one write, and read at once from a file without a descriptor.
_GATHER_BYTES = 65_536
#: Parts of one write; far below IOV_MAX.
_GATHER_PARTS = 64
#: What one connection may send in one turn of the loop, however quickly its peer reads.
_TURN_BYTES = 4_194_304
#: While there is no descriptor to watch a full socket with, it is tried this often whether it has room.
_FIRST_TRY_S = 0.1
_LONGEST_TRY_S = 2.0


class SendQueue:
    """The queue of one socket. ``on_room`` is called by the loop when the socket takes bytes again: the owner then
    calls ``resume``."""

    __slots__ = (
        "_begun",
        "_corked",
        "_loop",
        "_may_have_ranges",
        "_on_room",
        "_queue",
        "_queue_bytes",
        "_share",
        "_socket_fd",
        "_timer",
        "_try_s",
        "_waiting",
        "_watched_fd",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket_fd: int,
        on_room: Callable[[], None],
        share: Share | None = None,
    ) -> None:
        """``share`` is where a second descriptor has to come from; None: from anywhere."""
        self._loop = loop
        self._socket_fd = socket_fd
        self._on_room = on_room
        self._share = share
        self._timer: asyncio.TimerHandle | None = None
        #: The pause before the next try without a second descriptor: longer after each that fails.
        self._try_s = _FIRST_TRY_S
        self._queue: deque[Payload] = deque()
        self._queue_bytes = 0
        #: What was sent already of the range at the head of the queue.
        self._begun = 0
        #: Whether the queue had a range since it was empty.
        self._may_have_ranges = False
        self._corked = False
        self._waiting = False
        #: A second descriptor of the socket, made when it is full for the first time: the first one is asyncio's to
        #: watch, and its transports let no one else do it.
        self._watched_fd = -1

    def __repr__(self) -> str:
        return f"SendQueue({self._queue_bytes} bytes{', socket full' if self._waiting else ''})"

    @property
    def queued_bytes(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self._queue_bytes

    def measure(self) -> int:
        """The bytes of the queue that are in memory: ranges of files are not."""
        return sum(len(part) for part in self._queue if not isinstance(part, FileRange))

    @property
    def is_empty(self) -> bool:
        return not self._queue

    def put(self, parts: Sequence[Payload], size: int) -> int:
        """Queue the parts, of ``size`` bytes, send what the socket takes, and return how many bytes are queued.

        Raises ``OSError``.
        """
        self._may_have_ranges = True
        self._queue.extend(parts)
        self._queue_bytes += size
        return self._gathered()

    def put_bytes(self, data: bytes) -> int:
        """The same for one part that is no file's: most answers are."""
        self._queue.append(data)
        queue_bytes = self._queue_bytes = self._queue_bytes + len(data)
        return queue_bytes if self._corked and queue_bytes <= _GATHER_BYTES else self._gathered()

    def _gathered(self) -> int:
        if not self._waiting and (not self._corked or self._queue_bytes > _GATHER_BYTES):
            self._pump()
        return self._queue_bytes

    def cork(self) -> None:
        """Until ``uncork`` small answers only gather: one system call sends them all."""
        self._corked = True

    def uncork(self) -> None:
        """Send what has gathered. Raises like ``put``."""
        self._corked = False
        if self._queue and not self._waiting:
            self._pump()

    def resume(self) -> None:
        """The socket has room. Raises like ``put``."""
        self._pump()

    def clear(self) -> None:
        """Drop what is queued, and let go of the socket: nothing may be put anymore."""
        self._queue.clear()
        self._queue_bytes = self._begun = 0
        self._may_have_ranges = False
        self._stop_waiting()
        if self._watched_fd >= 0:
            # An open descriptor would keep the connection open when asyncio has closed its own.
            if self._share is not None:
                self._share.give(self._watched_fd)
            os.close(self._watched_fd)
            self._watched_fd = -1

    def _pump(self) -> None:
        """Send until nothing is left, the socket is full, or this turn has had its share."""
        queue = self._queue
        share = _TURN_BYTES
        try:
            while queue and share > 0:
                if not self._may_have_ranges and self._queue_bytes <= _GATHER_BYTES:
                    sent = self._send_joined()
                elif type(part := queue[0]) is FileRange and part.size >= SENDFILE_LEAST_BYTES:
                    sent = self._send_range(part, share)
                else:
                    sent = self._send_gathered()
                self._queue_bytes -= sent
                share -= sent
        except BlockingIOError:
            pass
        if queue:
            if share < _TURN_BYTES:
                self._try_s = _FIRST_TRY_S
            # If there is room still, this continues in the next turn, after everyone else.
            self._wait()
            return
        self._may_have_ranges = False
        if self._waiting:
            self._stop_waiting()

    def _send_joined(self) -> int:
        """Send all that is queued, small answers alone, in one call: to copy them costs less than to go through them.
        Raises ``BlockingIOError`` if the socket takes none."""
        queue: deque[Any] = self._queue
        data: Bytes = queue[0] if len(queue) == 1 else b"".join(queue)
        sent = os.write(self._socket_fd, data)
        queue.clear()
        if sent < len(data):
            queue.append(memoryview(data)[sent:])
        return sent

    def _send_range(self, part: FileRange, most: int) -> int:
        """Send at most ``most`` bytes of the file range at the head of the queue. Raises ``BlockingIOError`` if the
        socket takes none."""
        file = part.file
        part.check()
        descriptor = file.fileno()
        if descriptor is None:
            # A file in memory: a piece of it becomes bytes.
            piece = part.first(_GATHER_BYTES)
            self._queue[0] = part.after(piece.size)
            self._queue.appendleft(piece.read())
            return 0
        begun = self._begun
        left = part.size - begun
        sent = os.sendfile(self._socket_fd, descriptor, part.position + begun, min(most, left))
        if sent == left:
            self._queue.popleft()
            self._begun = 0
        elif sent > 0:
            self._begun = begun + sent
        else:
            raise OSError(f"{file.path} ends {left} bytes before a range that was promised")
        return sent

    def _send_gathered(self) -> int:
        """Send what is at the head of the queue before the next large range, in one call."""
        queue = self._queue
        buffers: list[Bytes] = []
        size = 0
        for index in range(min(len(queue), _GATHER_PARTS)):
            part = queue[index]
            if isinstance(part, FileRange):
                if part.size >= SENDFILE_LEAST_BYTES or size + part.size > _GATHER_BYTES:
                    break
                part = queue[index] = part.read()
            elif buffers and size + len(part) > _GATHER_BYTES:
                break
            buffers.append(part)
            size += len(part)
        sent = left = os.writev(self._socket_fd, buffers)
        for data in buffers:
            if len(data) > left:
                queue[0] = memoryview(data)[left:]
                break
            left -= len(data)
            queue.popleft()
        return sent

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            if self._has_second():
                self._loop.add_writer(self._watched_fd, self._on_room)
            else:
                self._timer = self._loop.call_later(self._try_s, self._try_again)
                self._try_s = min(2 * self._try_s, _LONGEST_TRY_S)

    def _has_second(self) -> bool:
        """Whether there is a second descriptor: those who do not read must not take the last ones from others."""
        if self._watched_fd >= 0:
            return True
        try:
            second = os.dup(self._socket_fd)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            return False
        if self._share is not None and not self._share.take(second):
            os.close(second)
            return False
        self._watched_fd = second
        return True

    def _try_again(self) -> None:
        self._timer = None
        self._waiting = False
        self._on_room()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif self._waiting:
            self._loop.remove_writer(self._watched_fd)
        self._waiting = False
        self._try_s = _FIRST_TRY_S
