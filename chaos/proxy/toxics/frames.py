"""Toxics that act on single frames of Kafka's. Not in Toxiproxy (docs/proxy.md "Frames").

They look for frames of some APIs, ``api_keys`` (bit k stands for API key k): requests upstream, answers downstream.
They spare the first ``skip`` of them on their proxy and act on the next ``count``, 0 for all. Everything else passes,
in pieces as it comes: a frame is kept whole only to be repeated, and then within a bound. The state machine is pure;
which frame is which is ``frames``', and the table of these toxics is ``frame_types``'.
"""

from __future__ import annotations

from chaos.proxy.frames import HEADER_BYTES, Dialogue, FrameHeader, FrameTally, FrameWalk, read_header
from chaos.proxy.pipe import Chunk, Pipe, PipeDirection
from chaos.proxy.toxics.base import Attributes, Stage, pass_all, pass_end
from cluster.seams.units import ms_of_seconds, seconds_of_ms

#: A larger frame is not repeated: its copy would have to be kept.
MAX_REPEATED_BYTES = 64 * 1024
#: API keys that fit into an int64 as bits.
MAX_API_KEY = 62


class FrameStage(Stage):
    """Moves frames on, judging each at its beginning. A subclass says what becomes of one that it is to act on."""

    #: More chunks than a header has bytes: a pipe full of single bytes holds a whole one.
    input_capacity = 16
    _api_keys: int
    _skip: int
    _count: int

    def place(self, tally: FrameTally, walk: FrameWalk, direction: PipeDirection, dialogue: Dialogue) -> None:
        """Where the first byte of the input lies. Called once, before the first step.

        The frame that it lies in has been delivered in part: the rest passes, unjudged.
        """
        self.tally = tally
        self._dialogue = dialogue
        self._header_bytes = HEADER_BYTES[direction]
        self._framed = walk.framed
        self._left = walk.left
        #: what of the next header was delivered already
        self._delivered = bytes(walk.head)
        self._dropping = False
        #: the frame at the head of the input that is being acted on before its first byte moves
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
                    return None  # the rest of the header is still to come
                self._framed = False  # it never will
        pass_end(source, sink)
        return None

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        if self._dropping and self._left:
            # Half of a frame is gone: what follows could not be read.
            self.drop(source)
            sink.end()

    # --- what a subclass decides

    def acts_on(self, header: FrameHeader) -> bool:
        """Whether to act on this frame. Asked once for each frame; counts those that match."""
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
        """Act on the frame at the gate: let it in by ``_enter``, or say when to come again, or do neither."""
        raise NotImplementedError

    def ended(self, sink: Pipe, received_at: float) -> None:
        """The frame that was let in has moved on."""
        return

    def moved(self, chunk: Chunk) -> None:
        """This much of a frame has moved on."""
        return

    # --- moving

    def _enter(self, *, dropping: bool = False) -> None:
        """Let the frame at the gate move, or be dropped as it comes."""
        if self._at_gate is not None:
            self._left = self._at_gate.size_bytes
            self._dropping = dropping
            self._at_gate = None

    def _open(self, source: Pipe) -> bool:
        """Read the next header; whether there was a whole one. Leaves the frame at the gate, or lets it in."""
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
    """Holds the frame, and with it all that is behind, until the toxic is removed.

    Lossless: it is delivered then. Lossy: it is dropped, and its connection closes.
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
    """Delays the frame, counted from when its first byte was received; what is behind it waits too."""

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
    """Swallows the frame alone."""

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._enter(dropping=True)
        return None


class CutFrameStage(FrameStage):
    """Swallows the frame but for its first ``kept`` bytes, and closes its connection; what was before it is delivered.

    At least its last byte is missing.
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
    """Delivers the frame, and then closes its connection: what is behind it is swallowed."""

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
    """Sends the frame twice. Only of a request: the second answer is swallowed, since no one awaits it."""

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
            self.counters.bytes_in += len(self._copy)  # bytes of ours: what comes out came in
            sink.push(Chunk(memoryview(bytes(self._copy)), received_at))
            self._copy = None


class SurplusStage(FrameStage):
    """Swallows the second answer to each request that was sent twice. No toxic of the API: a repeat brings it along."""

    def configure(self, attributes: Attributes, now: float) -> None:
        return

    def acts_on(self, header: FrameHeader) -> bool:
        return self._dialogue.is_surplus(header)

    def _gate(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        self._enter(dropping=True)
        return None
