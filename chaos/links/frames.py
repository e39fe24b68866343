"""Lets faults act on single Kafka frames on a link, which only gapless's own proxy supports. Blocking; thread-safe.

Owns the translation to the toxics in docs/proxy.md "Frames", and the refusal of an external Toxiproxy. Does not own
what the toxics do (``chaos.proxy.toxics.frames``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from chaos.links.errors import LinkRefused
from chaos.links.links import Links
from chaos.links.state import FramesSeen

Act = Literal["hold", "delay", "drop", "repeat", "cut", "close"]


def act_on_frames(
    links: Links,
    link: str,
    act: Act,
    direction: Literal["request", "response"],
    api_keys: Iterable[int],
    *,
    name: str,
    skip: int = 0,
    count: int = 0,
    lossy: bool = False,
    delay_ms: int = 0,
    kept_bytes: int = 0,
) -> str:
    """Act on ``count`` frames of these APIs (0 for all) after the first ``skip``; returns the toxic's name.

    ``lossy`` applies only to ``hold``, ``delay_ms`` to ``delay``, and ``kept_bytes`` to ``cut``. Raises LinkRefused on
    an external Toxiproxy, and for ``repeat`` with responses.
    """
    if not links.is_gapless():
        raise LinkRefused(
            f"{links!r} is an external Toxiproxy, which knows no frames of Kafka's; use gapless's own proxy"
        )
    mask = sum(1 << api_key for api_key in frozenset(api_keys))
    attributes = {"api_keys": mask, "skip": skip, "count": count}
    if act == "hold":
        attributes["lossy"] = int(lossy)
    elif act == "delay":
        attributes["delay"] = delay_ms
    elif act == "cut":
        attributes["kept"] = kept_bytes
    stream: Literal["upstream", "downstream"] = "upstream" if direction == "request" else "downstream"
    return links.add_toxic(link, f"{act}_frame", stream, attributes, name=name).name


def frames_seen(links: Links, link: str, name: str) -> FramesSeen | None:
    """The counts of a toxic that :func:`act_on_frames` added; None if the link does not have it."""
    stats = links.stats(link)
    return None if stats is None else stats.frames.get(name)
