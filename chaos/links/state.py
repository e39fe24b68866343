"""The state of links and toxics as the server reports it. Owns the parsing of its JSON; ignores unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToxicState:
    """One toxic of a link. ``stream`` is ``upstream`` (requests) or ``downstream`` (responses)."""

    name: str
    type: str
    stream: str
    toxicity: float
    attributes: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class LinkState:
    """One link as the server reports it. ``listen`` and ``upstream`` are ``host:port``."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[ToxicState, ...]

    @property
    def clear(self) -> bool:
        """Whether the link is enabled and has no toxic."""
        return self.enabled and not self.toxics


@dataclass(frozen=True, slots=True)
class StreamStats:
    """Bytes in one direction of a link since it was created: in = out + held + dropped + discarded."""

    bytes_in: int
    bytes_out: int
    bytes_held: int
    bytes_dropped: int
    bytes_discarded: int


@dataclass(frozen=True, slots=True)
class FramesSeen:
    """The counts of a toxic that acts on frames: ``matched`` frames, and those that it ``acted`` on.

    ``last_api_key`` is the API of the last one, ``longest_ms`` the longest delay of one.
    """

    matched: int
    acted: int
    last_api_key: int
    longest_ms: int = 0


@dataclass(frozen=True, slots=True)
class LinkStats:
    """Counters of a link since it was created; ``frames`` by the names of the toxics that are there."""

    connections_active: int
    connections_accepted: int
    connections_closed: int
    dials_failed: int
    request: StreamStats
    response: StreamStats
    frames: Mapping[str, FramesSeen] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ServerStats:
    """The proxy process itself. Reading it starts a new window of ``lag_recent_max_ms``."""

    seed: int
    lag_recent_max_ms: float
    lag_max_ms: float


def toxic_state(answer: Mapping[str, Any]) -> ToxicState:
    return ToxicState(
        name=answer["name"],
        type=answer["type"],
        stream=str(answer["stream"]).lower(),
        toxicity=float(answer["toxicity"]),
        attributes=dict(answer["attributes"]),
    )


def link_state(answer: Mapping[str, Any]) -> LinkState:
    return LinkState(
        name=answer["name"],
        listen=answer["listen"],
        upstream=answer["upstream"],
        enabled=answer["enabled"],
        toxics=tuple(toxic_state(toxic) for toxic in answer["toxics"]),
    )


def link_stats(answer: Mapping[str, Any]) -> LinkStats:
    connections, streams = answer["connections"], answer["streams"]
    return LinkStats(
        connections_active=connections["active"],
        connections_accepted=connections["accepted"],
        connections_closed=connections["closed"],
        dials_failed=connections["dial_failed"],
        request=_stream_stats(streams["upstream"]),
        response=_stream_stats(streams["downstream"]),
        frames={name: _frames_seen(seen) for name, seen in answer["frames"].items()},
    )


def _stream_stats(answer: Mapping[str, Any]) -> StreamStats:
    return StreamStats(**{name: int(answer[name]) for name in StreamStats.__slots__})


def _frames_seen(answer: Mapping[str, Any]) -> FramesSeen:
    return FramesSeen(**{name: int(answer[name]) for name in FramesSeen.__slots__})


def server_stats(answer: Mapping[str, Any]) -> ServerStats:
    lag = answer["event_loop_lag"]
    return ServerStats(answer["seed"], lag["max_since_last_read_ms"], lag["max_ms"])
