"""One connection of the real transport: asyncio's BufferedProtocol, frames parsed in place, files sent by sendfile.

Owns its socket, its life and back-pressure. Does not own what a frame means, nor the order of what is sent
(``cluster.seams.send_queue``), nor listening and connecting (``cluster.seams.asyncio_transport``). Stream readers are
not used: they cost a copy and up to twice the time per request.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

from cluster.protocol.errors import ProtocolError
from cluster.protocol.framing import INITIAL_BYTES, KEEP_BYTES, FrameBuffer
from cluster.seams.descriptors import Share
from cluster.seams.frame_memory import FrameMemory
from cluster.seams.frame_turns import FrameTurns
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.peer_state import has_left
from cluster.seams.send_queue import SendQueue
from cluster.seams.storage import Payload, payload_size
from cluster.seams.transport import AcceptHandler, FrameHandler
from cluster.seams.unread_answers import UnreadAnswers

logger = logging.getLogger(__name__)

#: An accepted connection delivers no more frames while more than this is queued for its peer, until little is left:
#: who does not read answers may not ask for more of them.
CHOKE_BYTES = 65_536
UNCHOKE_BYTES = 16_384
#: How long a closing connection may take to hand over what is queued.
LINGER_S = 5.0


class AsyncioConnection(asyncio.BufferedProtocol):
    """One connection; both asyncio's protocol and the seam's ``Connection``."""

    def __init__(
        self,
        accept: AcceptHandler,
        max_frame_bytes: int,
        *,
        on_gone: Callable[[AsyncioConnection], None] | None,
        send_buffer_bytes: int = -1,
        memory: FrameMemory | None = None,
        unread: UnreadAnswers | None = None,
        share: Share | None = None,
        turns: FrameTurns | None = None,
    ) -> None:
        """``on_gone``, ``memory``, ``unread``, ``share`` (of descriptors) and ``turns`` are the listener's; None for a
        connection that was opened from here, which is never choked: two ends that both wait for the other to read would
        wait forever.
        """
        self._accept = accept
        self._send_buffer_bytes = send_buffer_bytes
        self._memory = memory
        self._unread = unread
        self._share = share
        self._turns = turns or FrameTurns(asyncio.get_running_loop())
        self._descriptor = -1
        limit_key = "" if on_gone is None else "socket.request.max.bytes"
        self._frames = FrameBuffer(max_frame_bytes, None if memory is None else self._resized, limit_key)
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outbox: SendQueue | None = None
        self._handler: FrameHandler | None = None
        self._peer = "?"
        self._paused = False
        self._choked = False
        #: Whether requests wait for a later turn of the loop.
        self._rests = False
        #: Whether there is no room for the request that has begun.
        self._starved = False
        self._closing = False
        self._opening = True
        self._at_eof = False
        self._reason = "closed by the peer"
        self._linger: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()

    def __repr__(self) -> str:
        return f"AsyncioConnection({self._peer}, {self._outbox!r}, {self._frames!r})"

    # What the owner sees: the seam.

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def queued_bytes(self) -> int:
        return 0 if self._outbox is None else self._outbox.queued_bytes

    def send_frame(self, parts: Sequence[Payload]) -> None:
        if self._outbox is None or self._closing:
            return
        try:
            if len(parts) == 1 and type(only := parts[0]) is bytes:
                queued_bytes = self._outbox.put_bytes(len(only).to_bytes(4, "big") + only)
            else:
                size = payload_size(parts)
                queued_bytes = self._outbox.put((size.to_bytes(4, "big"), *parts), size + 4)
        except OSError as error:
            # The frame's size is promised already, so nothing can follow it.
            self._abort(f"sending failed: {error}")
            return
        if queued_bytes > CHOKE_BYTES and self._on_gone is not None:
            self._choke(self._outbox)

    def is_left(self) -> bool:
        return self._transport is None or self._at_eof or has_left(self._transport)

    def keep_request(self, size_bytes: int) -> None:
        if self._memory is not None:
            self._memory.keep(self, size_bytes if size_bytes > INITIAL_BYTES else 0)
            if self._frames.allocated_bytes > KEEP_BYTES:
                self._frames.trim()

    def pause_reading(self) -> None:
        self._paused = True
        self._stop_reading()

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            # Not from here: the owner is in the middle of something, and frames are delivered by the loop.
            self._loop.call_soon(self._go_on_reading)

    def close(self) -> None:
        self._close("closed by its owner")

    def abort(self) -> None:
        self._abort("aborted by its owner")

    async def wait_closed(self) -> None:
        """Wait until ``on_closed`` was called."""
        await self._gone.wait()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"no stream transport: {transport!r}")
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_buffer_bytes > 0:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._share is not None:
            if self._share.take(connected.fileno()):
                self._descriptor = connected.fileno()
            else:
                self._share.warn(self._loop.time())
                self._closing = True
        peer = transport.get_extra_info("peername")
        if peer:
            self._peer = f"{peer[0]}:{peer[1]}"
        if self._closing:
            # Aborted between its arrival and now: no one learns of it.
            transport.abort()
            return
        self._transport = transport
        self._outbox = SendQueue(self._loop, connected.fileno(), self._go_on_sending, self._share)
        # Before Python 3.11.4 asyncio adds its reader after this call, and so undoes a pause made in it.
        self._loop.call_soon(self._opened)
        try:
            self._handler = self._accept(self)
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("no handler for the connection from %s", self._peer)
            self._abort("its owner failed to accept it")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        frames = self._frames.received(nbytes)
        if self._closing:
            self._frames.clear()
        else:
            self._deliver(frames)

    def eof_received(self) -> bool:
        # Asyncio may tell it again when reading was paused and resumed after the end.
        if self._handler is not None and not self._closing and not self._at_eof:
            self._at_eof = True
            try:
                self._handler.on_eof()
            except Exception as error:
                halt_if_out_of_memory(error)
                logger.exception("the handler of %s failed at the end of its input", self._peer)
                self._close("its handler failed")
        # Half-closed: answers that are still owed can go out. The owner closes.
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._outbox is not None:
            self._outbox.clear()
        self._transport = self._outbox = None
        self._frames.close()
        if self._memory is not None:
            self._memory.give(self)
        if self._unread is not None:
            self._unread.read(self)
        if self._share is not None:
            self._share.give(self._descriptor)
        if self._linger is not None:
            self._linger.cancel()
        handler, self._handler = self._handler, None
        try:
            if handler is not None:
                handler.on_closed(self._reason if exc is None else str(exc))
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("the handler of %s failed as its connection closed", self._peer)
        finally:
            self._gone.set()
            if self._on_gone is not None:
                self._on_gone(self)

    # Reading.

    def _opened(self) -> None:
        self._opening = False
        if self._paused or self._choked or self._starved:
            self._stop_reading()

    # What the memory of the listener's large requests asks (``FrameMemory``).

    @property
    def pending_bytes(self) -> int:
        return self._frames.pending_bytes

    @property
    def is_reading(self) -> bool:
        return not (self._paused or self._choked or self._closing)

    def trim(self) -> bool:
        return self._frames.trim()

    def stalled(self) -> None:
        logger.warning("closing the connection from %s: half a request, while others wait for its memory", self._peer)
        self._abort("half a request, while others wait for its memory")

    def go_on(self) -> None:
        self._starved = False
        self._loop.call_soon(self._go_on_reading)

    def _resized(self, frame_bytes: int) -> None:
        if self._memory is None:
            return
        if not frame_bytes:
            self._memory.give(self)
        elif not self._memory.take(self, frame_bytes):
            self._starved = True
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._transport is not None and not (self._closing or self._opening):
            self._transport.pause_reading()

    def _go_on_reading(self, *, takes_one: bool = False) -> None:
        if self._rests and not takes_one:
            return
        self._rests = False
        # What came before the pause goes first; it may pause again.
        self._deliver(self._frames.frames(), takes_one=takes_one)
        if self._transport is not None and not (
            self._paused or self._choked or self._starved or self._rests or self._closing
        ):
            self._transport.resume_reading()

    def _deliver(self, frames: Iterator[memoryview], *, takes_one: bool = False) -> None:
        turns, handler = self._turns, self._handler
        if self._outbox is None or handler is None or not self.is_reading:
            return
        if self._frames.pending_bytes and not takes_one and turns.is_over():
            self._rest()
            return
        # What is answered at once is sent at once, but not one by one when several requests came together.
        self._outbox.cork()
        try:
            for frame in frames:
                handler.on_frame(frame)
                if self._paused or self._choked or self._closing:
                    break
                if self._frames.pending_bytes and (turns.resting or turns.is_over()):
                    self._rest()
                    break
        except ProtocolError as error:
            logger.warning("closing the connection from %s: %s", self._peer, error)
            self._close(str(error))
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("closing the connection from %s: its handler failed", self._peer)
            self._close(f"its handler failed: {error}")
        self._uncork()

    def _rest(self) -> None:
        """Continue after all others had their turn."""
        self._rests = True
        self._stop_reading()
        # Then it takes a request, however little time is left.
        self._turns.rest(lambda: self._go_on_reading(takes_one=True))

    def _uncork(self) -> bool:
        """Send what has gathered; False if that failed, and the connection is aborted."""
        if self._outbox is not None:
            try:
                self._outbox.uncork()
            except OSError as error:
                self._abort(f"sending failed: {error}")
                return False
        return True

    # Sending.

    def _go_on_sending(self) -> None:
        """The socket has room for what is queued."""
        if self._outbox is None or self._transport is None:
            return
        try:
            self._outbox.resume()
        except OSError as error:
            self._abort(f"sending failed: {error}")
            return
        if self._choked and self._unread is not None:
            self._unread.progressed(self, self._outbox.measure)
        if self._closing and self._outbox.is_empty:
            self._transport.close()
        elif self._choked and self._outbox.queued_bytes <= UNCHOKE_BYTES:
            self._choked = False
            if self._unread is not None:
                self._unread.read(self)
            self._loop.call_soon(self._go_on_reading)

    def _choke(self, outbox: SendQueue) -> None:
        """The peer is to read first."""
        if not self._choked:
            self._choked = True
            self._stop_reading()
        if self._unread is not None:
            self._unread.keep(self, outbox.measure())

    def give_up(self) -> None:
        logger.warning("closing the connection from %s: it does not read, and others need the memory", self._peer)
        self._abort("its peer does not read, and others need the memory")

    # Ending.

    def _close(self, reason: str) -> None:
        if self._closing or self._transport is None or self._outbox is None:
            return
        if not self._uncork():
            return
        self._closing = True
        self._reason = reason
        self._frames.clear()
        self._linger = self._loop.call_later(LINGER_S, self._abort, f"{reason}; the peer did not take what was sent")
        if self._outbox.is_empty:
            self._transport.close()
        else:
            # Read on, and drop it: asyncio notices a peer that went away only while it reads.
            self._transport.resume_reading()

    def _abort(self, reason: str) -> None:
        self._closing = True
        if self._transport is None or self._outbox is None:
            return
        self._reason = reason
        self._outbox.clear()
        self._transport.abort()
