"""Describes each example of an anomaly in one sentence: what was found, where, and the evidence for it. Pure.

Owns the sentences; each module of this package has those for one group of anomalies. Does not own the numbers in them,
which come from the example. Does not know Spark or HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.explain import files, groups, headers, readers, serving, timing, transactions, value_anomalies
from verifier.explain.value_names import producer_name, value_name
from verifier.facts import Found

__all__ = ["producer_name", "sentence", "value_name"]

_SENTENCES: Mapping[str, Callable[[Found], str]] = {
    **value_anomalies.SENTENCES,
    **headers.SENTENCES,
    **files.SENTENCES,
    **readers.SENTENCES,
    **timing.SENTENCES,
    **serving.SENTENCES,
    **transactions.SENTENCES,
    **groups.SENTENCES,
}


def sentence(found: Found) -> str:
    """The example as one sentence. Raises ``KeyError`` for an unknown check."""
    return f"{found.topic}-{found.partition}: {_SENTENCES[found.check](found)}"
