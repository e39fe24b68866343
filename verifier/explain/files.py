"""Sentences for the anomalies of files beside the log (``verifier.anomalies.files``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.facts import Found
from verifier.files.model import ABORTED_INDEX, CHECKPOINT, INDEX, SNAPSHOT, TAIL


def _file(found: Found) -> str:
    detail = found.detail
    return f"broker {detail['broker']}, {detail['file']}: {detail['problem']}"


SENTENCES: Mapping[str, Callable[[Found], str]] = dict.fromkeys(
    (INDEX, CHECKPOINT, SNAPSHOT, TAIL, ABORTED_INDEX), _file
)
