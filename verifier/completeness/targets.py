"""Checks the target of each fault's record against the fault's own probe and against ``leaders.jsonl``. Pure.

Owns this check. An excuse depends on the target: which brokers a fault cut off, and whether it delayed requests. The
probe and ``leaders.jsonl`` record the same facts independently. They were written at other times, and ``leaders.jsonl``
by another part of the conductor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verifier.closing.closing import Closing
from verifier.witness.effectiveness import Injected
from verifier.witness.leaderships import Sighting
from verifier.witness.witness import SLACK_NS, spans

_LEADER = re.compile(r"\bleader of (?P<topic>\S+)-(?P<partition>\d+)\b")
_DIRECTION = re.compile(r"\b(request|response)s?\b")

#: The brokers that a target names: those cut off from producers, and those cut off from other brokers.
Hit = tuple[frozenset[int], frozenset[int]]


def misnamed(closing: Closing) -> Iterator[str]:
    """One line for each fault whose target contradicts its probe or the leaders. A probe that failed shows nothing."""
    for each in closing.faults.injected:
        if each.skipped:
            continue
        named = f"injection {each.number} ({each.fault}) is recorded on {each.target!r:.100}"
        if "error" not in each.probe:
            if _hit_brokers(each, each.target) != _hit_brokers(each, _probed(each.probe)):
                yield f"{named}, and its probe looked at {_probed(each.probe) or 'no broker and no link'}"
            direction = each.probe.get("direction")
            if direction is not None and _DIRECTION.findall(each.target) != [direction]:
                yield f"{named}, and its probe looked at the direction {direction!r:.20}"
        if not _led(each, closing.looks):
            yield f"{named}, and by leaders.jsonl another broker led there"


def _hit_brokers(each: Injected, target: str) -> Hit:
    """The brokers that the fault hits if its target is ``target``."""
    span = spans([replace(each, target=target)])[0]
    return span.brokers, span.others


def _probed(probe: Mapping[str, Any]) -> str:
    """The brokers and links that a probe examined, in the form of a target."""
    steps, links = probe.get("steps"), probe.get("links")
    seen = [probe, *(each for each in (steps if isinstance(steps, list) else []) if isinstance(each, dict))]
    brokers = [f"broker {each['broker']}" for each in seen if "broker" in each]
    named = [*(links if isinstance(links, list) else []), *([probe["link"]] if "link" in probe else [])]
    return ", ".join([*brokers, *map(str, named)])


def _led(each: Injected, looks: Mapping[tuple[str, int], Sequence[Sighting]]) -> bool:
    """Whether a target such as ``leader of t-0`` can be right: one of its brokers can have led the partition then."""
    named = _LEADER.search(each.target)
    if named is None or not looks:
        return True
    brokers, _ = _hit_brokers(each, each.target)
    seen = looks.get((named["topic"], int(named["partition"])), ())
    ends_ns = [*(sighting.time_ns for sighting in seen[1:]), 2**62]
    led = {
        sighting.leader
        for sighting, end_ns in zip(seen, ends_ns, strict=False)
        if (sighting.before_ns or 0) - SLACK_NS <= each.start_ns <= end_ns + SLACK_NS
    }
    # an unrecorded leader may have been any of them
    return None in led or bool(led & brokers)
