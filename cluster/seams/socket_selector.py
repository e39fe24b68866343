"""SocketSelector: the selector seam on non-blocking sockets, in plain Python, also where gevent has replaced them.

Owns sockets, the bytes that wait to be sent and the frames that arrive. Does not own when a node is connected to, nor
deadlines (``cluster.client.nodes``).
"""

from __future__ import annotations

import os
import selectors
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from errno import EINPROGRESS, EWOULDBLOCK
from itertools import islice

from cluster.protocol.framing import FrameBuffer, FrameTooLarge
from cluster.seams.selector import SelectorHandler
from cluster.seams.storage import Bytes
from cluster.seams.transport import MAX_FRAME_BYTES

#: epoll takes less than 25 days; who waits longer is back a little early.
_LONGEST_WAIT_S = 86_400.0
#: Buffers of one system call: half of what Linux takes.
_MOST_PARTS = 512
#: More than the bytes that can wait in the pipe of wake-ups, which is one.
_WAKEUP_BYTES = 64


class _SocketChannel:
    """One connection, or the attempt at one."""

    __slots__ = ("connecting", "frames", "is_closed", "node_id", "queue", "socket")

    def __init__(self, node_id: int, connection: socket.socket, max_frame_bytes: int) -> None:
        self.node_id = node_id
        self.socket = connection
        self.connecting = True
        self.is_closed = False
        self.frames = FrameBuffer(max_frame_bytes)
        #: What the kernel has not taken yet.
        self.queue: deque[Bytes] = deque()

    def __repr__(self) -> str:
        return f"_SocketChannel({self.node_id}, connecting={self.connecting}, {len(self.queue)} parts queued)"


class SocketSelector:
    """Answers of more than ``max_frame_bytes`` end their connection."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._selector = selectors.DefaultSelector()
        self._channels: dict[int, _SocketChannel] = {}
        # Connections that failed while they were written to, outside of a poll: the next one tells.
        self._failed: list[tuple[_SocketChannel, str]] = []
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        self._wakeup_reader.setblocking(False)
        self._wakeup_writer.setblocking(False)
        self._is_woken = self._is_waiting = False
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ, None)

    def __repr__(self) -> str:
        return f"SocketSelector({list(self._channels.values())!r})"

    # The seam

    def connect(self, node_id: int, host: str, port: int, address_index: int) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError as error:
            raise OSError(f"no name of a host: {host!r}") from error
        family, kind, protocol, _, address = found[address_index % len(found)]
        connection = socket.socket(family, kind, protocol)
        # Known before it is registered: what an exception cuts short can be closed.
        channel = self._channels[node_id] = _SocketChannel(node_id, connection, self._max_frame_bytes)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            number = connection.connect_ex(address)
            if number not in (0, EINPROGRESS, EWOULDBLOCK):
                raise OSError(number, os.strerror(number))
            self._selector.register(connection, selectors.EVENT_WRITE, channel)
        except BaseException:
            self._close(channel)
            raise

    def send(self, node_id: int, parts: Sequence[Bytes]) -> bool:
        channel = self._channels[node_id]
        size = sum(map(len, parts))
        channel.queue.append(size.to_bytes(4, "big"))
        channel.queue.extend(parts)
        if len(channel.queue) > len(parts) + 1:
            # An earlier frame waits, so this one does too.
            return False
        try:
            self._write(channel)
        except OSError as error:
            # Told by the next poll, after what the broker may have answered before. Until then it is sending.
            self._failed.append((channel, _reason(error)))
            return False
        if channel.queue:
            self._selector.modify(channel.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, channel)
        return not channel.queue

    def is_sending(self, node_id: int) -> bool:
        channel = self._channels.get(node_id)
        return channel is not None and bool(channel.queue)

    def close(self, node_id: int) -> None:
        channel = self._channels.get(node_id)
        if channel is not None:
            self._close(channel)

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        # Anyone who wakes it up writes the one and then reads the other, and here it is the other way round: one of
        # both sees it.
        self._is_waiting = True
        if self._is_woken or self._failed:
            timeout_ms = 0
        try:
            ready = self._selector.select(None if timeout_ms is None else min(timeout_ms / 1000, _LONGEST_WAIT_S))
        finally:
            self._is_waiting = False
        # What was requested before has a poll that returns.
        self._is_woken = False
        for key, events in ready:
            channel: _SocketChannel | None = key.data
            if channel is None:
                self._take_wakeups()
            elif channel.is_closed:
                # The handler closed it after something that came before in this poll.
                continue
            elif channel.connecting:
                self._finish_connecting(channel, handler)
            else:
                if events & selectors.EVENT_WRITE:
                    self._flush(channel, handler)
                if events & selectors.EVENT_READ and not channel.is_closed:
                    self._read(channel, handler)
        while self._failed:
            channel, reason = self._failed.pop(0)
            if not channel.is_closed:
                self._end(channel, handler, reason)

    def wakeup(self) -> None:
        if self._is_woken:
            return
        self._is_woken = True
        # Only a poll that waits needs a byte, which is a system call here and another one there.
        if self._is_waiting:
            # An error means that it is full, so that poll returns anyway, or shut down.
            with suppress(OSError):
                self._wakeup_writer.send(b"\x00")

    def shutdown(self) -> None:
        for channel in list(self._channels.values()):
            self._close(channel)
        self._failed.clear()
        self._selector.close()
        self._wakeup_reader.close()
        self._wakeup_writer.close()

    # What poll does

    def _take_wakeups(self) -> None:
        # Not suppress: this is what happens most often, and it costs three calls.
        try:  # noqa: SIM105
            self._wakeup_reader.recv(_WAKEUP_BYTES)
        except BlockingIOError:
            pass

    def _finish_connecting(self, channel: _SocketChannel, handler: SelectorHandler) -> None:
        number = channel.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._end(channel, handler, os.strerror(number))
            return
        try:
            own, peer = channel.socket.getsockname(), channel.socket.getpeername()
        except OSError as gone:
            self._end(channel, handler, _reason(gone))
            return
        if own == peer:
            # Nothing listens, and the kernel chose the very port that it was to connect to.
            self._end(channel, handler, "connected to itself")
            return
        channel.connecting = False
        self._selector.modify(channel.socket, selectors.EVENT_READ, channel)
        handler.on_connected(channel.node_id)

    def _read(self, channel: _SocketChannel, handler: SelectorHandler) -> None:
        try:
            count = channel.socket.recv_into(channel.frames.get_buffer())
        except BlockingIOError:
            return
        except OSError as error:
            self._end(channel, handler, _reason(error))
            return
        if count == 0:
            self._end(channel, handler, "closed by the broker")
            return
        try:
            for frame in channel.frames.received(count):
                handler.on_frame(channel.node_id, frame)
                if channel.is_closed:
                    return
        except FrameTooLarge as error:
            self._end(channel, handler, str(error))

    def _flush(self, channel: _SocketChannel, handler: SelectorHandler) -> None:
        try:
            self._write(channel)
        except OSError as error:
            self._end(channel, handler, _reason(error))
            return
        if not channel.queue:
            self._selector.modify(channel.socket, selectors.EVENT_READ, channel)
            handler.on_flushed(channel.node_id)

    def _write(self, channel: _SocketChannel) -> None:
        """Send what is queued, as far as the kernel takes it. Raises ``OSError``."""
        queue = channel.queue
        while queue:
            parts = list(islice(queue, _MOST_PARTS))
            try:
                count = channel.socket.sendmsg(parts)
            except BlockingIOError:
                return
            while queue and count >= len(queue[0]):
                count -= len(queue.popleft())
            if count:
                queue[0] = memoryview(queue[0])[count:]

    def _end(self, channel: _SocketChannel, handler: SelectorHandler, reason: str) -> None:
        self._close(channel)
        handler.on_closed(channel.node_id, reason)

    def _close(self, channel: _SocketChannel) -> None:
        channel.is_closed = True
        channel.queue.clear()
        # Not registered: an exception came before it was, or after it no longer was.
        with suppress(KeyError, ValueError):
            self._selector.unregister(channel.socket)
        channel.socket.close()
        if self._channels.get(channel.node_id) is channel:
            del self._channels[channel.node_id]


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
