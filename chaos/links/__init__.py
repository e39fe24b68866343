"""The links of a run: named proxies on a Toxiproxy server, which faults cut, slow down and heal.

Owns the client of Toxiproxy's API, on top of toxiproxy-python. Does not own the server (``chaos.proxy``, or an external
Toxiproxy), which links exist (the topology), or when they are cut (faults).
"""

from __future__ import annotations

from chaos.links.errors import (
    LinkConflict,
    LinkError,
    LinkMismatch,
    LinkNotFound,
    LinkRefused,
    LinkServerError,
    LinkTimeout,
    LinkUnreachable,
)
from chaos.links.frames import act_on_frames, frames_seen
from chaos.links.links import Links, StallModel
from chaos.links.state import FramesSeen, LinkState, LinkStats, ServerStats, StreamStats, ToxicState

__all__ = [
    "FramesSeen",
    "LinkConflict",
    "LinkError",
    "LinkMismatch",
    "LinkNotFound",
    "LinkRefused",
    "LinkServerError",
    "LinkState",
    "LinkStats",
    "LinkTimeout",
    "LinkUnreachable",
    "Links",
    "ServerStats",
    "StallModel",
    "StreamStats",
    "ToxicState",
    "act_on_frames",
    "frames_seen",
]
