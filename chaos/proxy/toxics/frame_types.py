"""The toxics that act on frames, by their type names in the API, with their attributes. Owns the table and its checks.

Does not own what each does (``frames``). docs/proxy.md "Frames" lists them for users.
"""

from __future__ import annotations

from chaos.proxy.toxics.base import Attributes, ToxicType
from chaos.proxy.toxics.frames import (
    MAX_API_KEY,
    CloseFrameStage,
    CutFrameStage,
    DelayFrameStage,
    DropFrameStage,
    FrameStage,
    HoldFrameStage,
    RepeatFrameStage,
    SurplusStage,
)

_MATCHING = ("api_keys", "skip", "count")


def _validate(attributes: Attributes) -> str | None:
    if not 0 < attributes["api_keys"] < 1 << (MAX_API_KEY + 1):
        return f"api_keys was invalid, must have a bit for each of some API keys up to {MAX_API_KEY}"
    for name in ("skip", "count", "delay", "kept"):
        if attributes.get(name, 0) < 0:
            return f"{name} was invalid, must not be negative"
    if attributes.get("lossy", 0) not in (0, 1):
        return "lossy was invalid, must be 0 or 1"
    return None


def _type(name: str, stage: type[FrameStage], *more: str, upstream_only: bool = False) -> ToxicType:
    go_name = "".join(word.capitalize() for word in name.split("_")) + "Toxic"
    return ToxicType(
        name, go_name, (*_MATCHING, *more), stage, validate=_validate, certain=True, upstream_only=upstream_only
    )


FRAME_TOXICS = (
    _type("hold_frame", HoldFrameStage, "lossy"),
    _type("delay_frame", DelayFrameStage, "delay"),
    _type("drop_frame", DropFrameStage),
    _type("repeat_frame", RepeatFrameStage, upstream_only=True),
    _type("cut_frame", CutFrameStage, "kept"),
    _type("close_frame", CloseFrameStage),
)
#: Added to the response stream of a connection on which a request was repeated. It stays there until the end.
SURPLUS = ToxicType("surplus_answers", "SurplusAnswersToxic", (), SurplusStage)
