"""The interface of toxics (docs/reference/toxiproxy.md "Toxics"): a type with attributes, and a stage.

A stage is a state machine between two pipes, and works on one stream of one connection. ``step`` moves the chunks that
may move now and says when it wants to run again. It never waits, so a link's toxics can change between two steps
without losing a byte. Owns the interface; each toxic has its own module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from chaos.proxy.pipe import DEFAULT_CAPACITY, Pipe, StreamCounters
from cluster.seams.randomness import Random

Attributes = Mapping[str, int]

#: Timers fire up to some ms late. To keep its rate, a stage catches up if it is late by less than this.
CATCH_UP_S = 0.05


class Stage(ABC):
    """One toxic at work on one stream of one connection. All times are seconds of the loop's clock."""

    #: the number of chunks in its input pipe at which the source must wait
    input_capacity = DEFAULT_CAPACITY

    def __init__(self, attributes: Attributes, random: Random, counters: StreamCounters, now: float) -> None:
        self.random = random
        self.counters = counters
        self.configure(attributes, now)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def configure(self, attributes: Attributes, now: float) -> None:
        """Use these attributes from now on, also for chunks that are already held. Releases no byte early."""

    @abstractmethod
    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        """Move the chunks that may move now; returns when to run again, or None to wait for new input or free space."""

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        """Called before the stage is removed. May end the sink; otherwise the chunks in the source are passed on."""
        return

    def drop(self, source: Pipe) -> None:
        """Swallow everything in the source."""
        self.counters.bytes_dropped += source.clear()


def pass_end(source: Pipe, sink: Pipe) -> None:
    """Pass the end of the stream on, once the source is empty."""
    if source.exhausted:
        sink.end(reset=source.reset)


def pass_all(source: Pipe, sink: Pipe) -> None:
    """Pass chunks on unchanged, as long as the sink is not full."""
    while source.chunks and not sink.full:
        sink.push(source.pop())
    pass_end(source, sink)


def accept_any(_attributes: Attributes) -> str | None:
    """Accept all attributes, as Toxiproxy does."""
    return None


@dataclass(frozen=True, slots=True)
class ToxicType:
    """A type of toxic: its name in the API, its integer attributes in the order of the output, and its stage.

    ``go_name`` and ``integer_kind`` are used only in error messages. ``validate`` returns what is wrong, or None.
    ``certain``: its toxicity must be 1. ``upstream_only``: it acts only on requests.
    """

    name: str
    go_name: str
    attributes: tuple[str, ...]
    stage: Callable[[Attributes, Random, StreamCounters, float], Stage]
    integer_kind: Literal["int", "int64"] = "int64"
    validate: Callable[[Attributes], str | None] = accept_any
    certain: bool = False
    upstream_only: bool = False
