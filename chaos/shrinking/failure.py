"""How a run fails, from its ``verdict.json``: which anomalies, whether a try has the same ones. Pure.

Two runs fail in the same way if the second has every anomaly that leads in the first; what those explain may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.shrinking.smaller_run import TryOutcome


def forbidden(verdict: Mapping[str, Any]) -> dict[str, int]:
    """What was found that the settings do not allow: how often, by the anomaly."""
    return {
        name: int(check["count"] - check["allowed_count"])
        for name, check in verdict["checks"].items()
        if check["count"] > check["allowed_count"]
    }


def leading(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of them that no other one explains."""
    found, checks = forbidden(verdict), verdict["checks"]

    def is_led(name: str) -> bool:
        leader = checks[name].get("explained_by")
        while leader is not None and checks[leader].get("explained_by") is not None:
            leader = checks[leader]["explained_by"]
        return leader in found

    return tuple(name for name in found if not is_led(name))


def found(verdict: Mapping[str, Any]) -> dict[str, int]:
    """What was found at all, what the settings allow included."""
    return {name: int(check["count"]) for name, check in verdict["checks"].items() if check["count"]}


@dataclass(frozen=True, slots=True)
class SameFailure:
    """The anomalies that a try must have: ``names``. Those in ``allowed`` count though the settings allow them."""

    names: tuple[str, ...]
    allowed: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return ", ".join(f"{name} (allowed)" if name in self.allowed else name for name in self.names)

    def outcome(self, verdict: Mapping[str, Any] | None) -> TryOutcome:
        """What a run shows with this verdict, None if it has none."""
        if verdict is None:
            return TryOutcome.UNRESOLVED
        there = forbidden(verdict).keys() | (self.allowed & found(verdict).keys())
        silent = [verdict["checks"].get(name, {}) for name in self.names if name not in there]
        if not silent:
            return TryOutcome.FAILED
        if all(_says_nothing(check) for check in silent):
            return TryOutcome.UNRESOLVED
        return TryOutcome.PASSED


def _says_nothing(check: Mapping[str, object]) -> bool:
    """Whether it found nothing where nothing could be judged: what is absent then is not known to be absent."""
    return bool(
        check.get("withheld") or check.get("failure") or "count" not in check or check.get("valid") == "unknown"
    )


def first_seen_ns(verdict: Mapping[str, Any], wanted: Sequence[str], begin_ns: int, end_ns: int) -> int | None:
    """The earliest time within these bounds that an example of what is looked for names: a guess where to look."""
    times = (
        time
        for name in wanted
        for example in verdict["checks"].get(name, {}).get("examples", ())
        for time in _times(example, "")
    )
    return min((time for time in times if begin_ns < time <= end_ns), default=None)


def _times(value: Any, key: str) -> Iterator[int]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _times(each, str(name))
    elif isinstance(value, list):
        for each in value:
            yield from _times(each, key)
    elif key.endswith("_ns") and isinstance(value, int) and not isinstance(value, bool):
        yield value
