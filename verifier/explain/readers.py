"""Sentences for the anomalies of readers (``verifier.anomalies.readers``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.explain.value_names import value_name
from verifier.facts import Found


def _delivery(found: Found) -> str:
    value = "bytes that are not a value" if found.stream is None else value_name(found.stream, found.sequence)
    return f"{found.detail['process']} (session {found.detail['session']}) was handed {value} at offset {found.offset}"


def _skip(found: Found) -> str:
    if found.detail.get("f") == "assign":
        return (
            f"{found.detail['process']} was assigned again from offset {found.offset} on "
            f"(session {found.detail['session']}), where it had reached {found.detail['expected']}: "
            f"it skipped {found.detail['passed']} offsets that hold something"
        )
    return (
        f"{_delivery(found)}, where {found.detail['expected']} was expected: "
        f"it skipped {found.detail['passed']} offsets that hold something"
    )


def _back(found: Found) -> str:
    return f"{_delivery(found)}, though it had already reached {found.detail['expected'] - 1}"


def _inside(sentence: Callable[[Found], str]) -> Callable[[Found], str]:
    return lambda found: f"{sentence(found)}, within one poll"


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "poll-skip": _skip,
    "int-poll-skip": _inside(_skip),
    "nonmonotonic-poll": _back,
    "int-nonmonotonic-poll": _inside(_back),
}
