"""Toxics that act on single Kafka frames. Not in Toxiproxy (docs/proxy.md "Frames").

Each looks for frames of certain APIs, ``api_keys`` (bit k stands for API key k): requests upstream, responses
downstream. It skips the first ``skip`` of them on its proxy, and acts on the next ``count``, 0 for all. All other bytes
pass as they come: a whole frame is kept only to repeat it, and only up to a limit. Owns this state machine, which is
pure. Does not own how frames are recognized (``chaos.proxy.frames``) or the table of these toxics (``frame_types``).
"""

from __future__ import annotations

from chaos.proxy.frames import HEADER_BYTES, Dialogue, FrameHeader, FrameTally, FrameWalk, read_header
from chaos.proxy.pipe import Chunk, Pipe, PipeDirection
from chaos.proxy.toxics.base import Attributes, Stage, pass_all, pass_end
from cluster.seams.units import ms_of_seconds, seconds_of_ms

#: Larger frames are not repeated, because the whole copy must be kept in memory.
MAX_REPEATED_BYTES = 64 * 1024
#: The largest API key that has a bit in an int64.
MAX_API_KEY = 62


class FrameStage(Stage):
    """Passes frames on, and decides at the header of each whether to act on it. Subclasses define what that means."""

    #: more chunks than a header has bytes, so that a pipe full of one-byte chunks has a whole header
    input_capacity = 16
    _api_keys: int
    _skip: int
    _count: int

    def place(self, tally: FrameTally, walk: FrameWalk, direction: PipeDirection, dialogue: Dialogue) -> None:
        """Say where in a frame the input begins. Called once, before the first step.

        If it begins inside a frame, a part of that frame was delivered already; the rest passes without a decision.
        """
        self.tally = tally
        self._dialogue = dialogue
        self._header_bytes = HEADER_BYTES[direction]
        self._framed = walk.framed
        self._left = walk.left
        #: the part of the next header that was delivered already
        self._delivered = bytes(walk.head)
        self._dropping = False
        #: the frame at the head of the input, while it is acted on before its first byte moves
        self._at_gate: FrameHeader | None = None
        if direction is PipeDirection.DOWNSTREAM:
            dialogue.is_followed = True

    def configure(self, attributes: Attributes, now: float) -> None:
        self._api_keys = attributes["api_keys"]
        self._skip = attributes["skip"]
        self._count = attributes["count"]

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        while source.chunks and not sink.full and not sink.ended:
            if not self._framed:
                pass_all(source, sink)
            elif self._left:
                self._move(source, sink)
            elif self._at_gate is not None:
                due_at = self._gate(now, source, sink)
                if self._at_gate is not None:
                    return due_at
            elif not self._open(source):
                if not source.ended:
                    return None  # wait for the rest of the header
                self._framed = False  # the rest will never come
        pass_end(source, sink)
        return None

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        if self._dropping and self._left:
            # a part of the frame is missing, so the peer could not parse what follows
            self.drop(source)
            sink.end()

    # --- for subclasses

    def acts_on(self, header: FrameHeader) -> bool:
        """Whether to act on this frame. Called once per frame; counts the frames that match."""
        api_key = self._dialogue.api_key_of(header)
        if api_key is None or not 0 <= api_key <= MAX_API_KEY or not self._api_keys >> api_key & 1:
            return False
        self.tally.matched += 1
        if self.tally.matched <= self._skip or (self._count and self.tally.acted >= self._count):
            return False
        self.tally.acted += 1
        self.tally.last_api_key = api_key
        return True

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        """Act on the frame at the gate: call ``_enter`` to let it move, or return when to run again, or do neither."""
        raise NotImplementedError

    def ended(self, sink: Pipe, received_at: float) -> None:
        """Called when the last byte of a frame has been passed on."""
        return

    def moved(self, chunk: Chunk) -> None:
        """Called when a part of a frame has been passed on."""
        return

    # --- moving

    def _enter(self, *, dropping: bool = False) -> None:
        """Let the frame at the gate move on or, with ``dropping``, drop its bytes as they come."""
        if self._at_gate is not None:
            self._left = self._at_gate.size_bytes
            self._dropping = dropping
            self._at_gate = None

    def _open(self, source: Pipe) -> bool:
        """Read the next header; returns False if it is incomplete. Leaves the frame at the gate, or lets it move on."""
        head = bytearray(self._delivered)
        for chunk in source.chunks:
            head += chunk.data[: self._header_bytes - len(head)]
            if len(head) == self._header_bytes:
                break
        else:
            return False
        header = read_header(head)
        if header is None:
            self._framed = False
            return True
        delivered, self._delivered = len(self._delivered), b""
        self._at_gate = header
        if delivered or not self.acts_on(header):
            self._enter()
            self._left -= delivered
        return True

    def _move(self, source: Pipe, sink: Pipe) -> None:
        chunk = source.take(self._left)
        self._left -= len(chunk.data)
        if self._dropping:
            self.counters.bytes_dropped += len(chunk.data)
        else:
            sink.push(chunk)
            self.moved(chunk)
        if not self._left:
            self._dropping = False
            self.ended(sink, chunk.received_at)


class HoldFrameStage(FrameStage):
    """Holds the frame and all later bytes until the toxic is removed.

    Then the frame is delivered or, if ``lossy``, dropped, and the connection closes.
    """

    _lossy: bool

    def configure(self, attributes: Attributes, now: float) -> None:
        super().configure(attributes, now)
        self._lossy = bool(attributes["lossy"])

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        return None

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        if self._lossy and self._at_gate is not None:
            self.drop(source)
            sink.end()


class DelayFrameStage(FrameStage):
    """Delays the frame by ``delay`` ms from when its first byte was received; later bytes wait, too."""

    _delay_ms: int

    def configure(self, attributes: Attributes, now: float) -> None:
        super().configure(attributes, now)
        self._delay_ms = attributes["delay"]

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        due_at = source.chunks[0].received_at + seconds_of_ms(self._delay_ms)
        if due_at > now:
            return due_at
        waited_ms = int(ms_of_seconds(now - source.chunks[0].received_at))
        self.tally.longest_ms = max(self.tally.longest_ms, waited_ms)
        self._enter()
        return None


class DropFrameStage(FrameStage):
    """Drops only the frame."""

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._enter(dropping=True)
        return None


class CutFrameStage(FrameStage):
    """Delivers only the first ``kept`` bytes of the frame, at most all but the last one, and closes its connection.

    Earlier frames are delivered.
    """

    _kept_bytes: int
    _cutting = False

    def configure(self, attributes: Attributes, now: float) -> None:
        super().configure(attributes, now)
        self._kept_bytes = attributes["kept"]

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._enter()
        self._cutting = True
        self._left = min(self._kept_bytes, self._left - 1)
        if not self._left:
            self._cut(source, sink)
        return None

    def _move(self, source: Pipe, sink: Pipe) -> None:
        super()._move(source, sink)
        if self._cutting and not self._left:
            self._cut(source, sink)

    def _cut(self, source: Pipe, sink: Pipe) -> None:
        self.drop(source)
        sink.end()


class CloseFrameStage(FrameStage):
    """Delivers the frame, then drops all later bytes and closes the connection."""

    _closing = False

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._closing = True
        self._enter()
        return None

    def _move(self, source: Pipe, sink: Pipe) -> None:
        super()._move(source, sink)
        if self._closing and not self._left:
            self.drop(source)
            sink.end()


class RepeatFrameStage(FrameStage):
    """Sends a request twice. ``SurplusStage`` drops the second response, because the client does not expect it."""

    _copy: bytearray | None = None

    def acts_on(self, header: FrameHeader) -> bool:
        return header.size_bytes <= MAX_REPEATED_BYTES and super().acts_on(header)

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        if self._at_gate is not None:
            self._dialogue.repeat(self._at_gate)
        self._copy = bytearray()
        self._enter()
        return None

    def moved(self, chunk: Chunk) -> None:
        if self._copy is not None:
            self._copy += chunk.data

    def ended(self, sink: Pipe, received_at: float) -> None:
        if self._copy is not None:
            self.counters.bytes_in += len(self._copy)  # the copy counts as received, so that the counters add up
            sink.push(Chunk(memoryview(bytes(self._copy)), received_at))
            self._copy = None


class SurplusStage(FrameStage):
    """Drops the second response to each repeated request. Not a toxic of the API: repeating a request adds it."""

    def configure(self, attributes: Attributes, now: float) -> None:
        return

    def acts_on(self, header: FrameHeader) -> bool:
        return self._dialogue.is_surplus(header)

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._enter(dropping=True)
        return None
