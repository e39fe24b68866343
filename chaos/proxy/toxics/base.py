"""What every toxic (docs/reference/toxiproxy.md "Toxics") is: a type with attributes, and a stage that works on one
stream of one connection.

A stage is a state machine on two pipes. ``step`` moves what may move now and says when it wants to run again; it
never waits, so a link can be switched between two steps without losing a byte. Owns the shapes; each toxic has a
file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from chaos.proxy.pipe import DEFAULT_CAPACITY, Pipe, StreamCounters
from cluster.seams.randomness import Random

Attributes = Mapping[str, int]

#: A timer fires up to some ms late; a pace that is behind by less than this catches up, so that the rate is kept.
CATCH_UP_S = 0.05


class Stage(ABC):
    """One toxic at work on one stream of one connection. All times are seconds of the loop's clock."""

    #: chunks its input takes before the source must wait
    input_capacity = DEFAULT_CAPACITY

    def __init__(self, attributes: Attributes, random: Random, counters: StreamCounters, now: float) -> None:
        self.random = random
        self.counters = counters
        self.configure(attributes, now)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def configure(self, attributes: Attributes, now: float) -> None:
        """Take these attributes from now on. What is held is judged again; no byte leaves early because of it."""

    @abstractmethod
    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        """Move what may move; returns when to come again, or None if only new input or room can change anything."""

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        """Called before the stage is taken out. May end the sink; otherwise what is left in the source is passed on."""
        return

    def drop(self, source: Pipe) -> None:
        """Swallow everything in the source."""
        self.counters.bytes_dropped += source.clear()


def pass_end(source: Pipe, sink: Pipe) -> None:
    """Hand the end of the stream on, once everything before it is gone."""
    if source.exhausted:
        sink.end(reset=source.reset)


def pass_all(source: Pipe, sink: Pipe) -> None:
    """Move chunks on, untouched, as long as there is room."""
    while source.chunks and not sink.full:
        sink.push(source.pop())
    pass_end(source, sink)


def accept_any(_attributes: Attributes) -> str | None:
    """The validation of Toxiproxy: none."""
    return None


@dataclass(frozen=True, slots=True)
class ToxicType:
    """A type of toxic: its name in the API, its integer attributes in the order they are printed, its stage.

    ``go_name`` and ``integer_kind`` only appear in texts of errors. ``validate`` returns what is wrong, or None.
    ``certain``: its toxicity is always 1. ``upstream_only``: it acts on requests alone.
    """

    name: str
    go_name: str
    attributes: tuple[str, ...]
    stage: Callable[[Attributes, Random, StreamCounters, float], Stage]
    integer_kind: Literal["int", "int64"] = "int64"
    validate: Callable[[Attributes], str | None] = accept_any
    certain: bool = False
    upstream_only: bool = False
