"""The links of a run as faults see them: named proxies on a Toxiproxy server, cut, slowed and healed.

Owns the client side of Toxiproxy's API, through toxiproxy-python. Does not own the server (``chaos.proxy``, or an
external Toxiproxy), nor which links there are (the topology) nor when they are cut (faults).
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
