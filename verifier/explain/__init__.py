"""One sentence for each example: what was found, where, and how one knows. Pure; knows no Spark and no HTML.

All numbers come from the example; nothing is computed here. Each module of this package has the sentences of one group
of anomalies; this one finds them.
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
    """The example in words."""
    return f"{found.topic}-{found.partition}: {_SENTENCES[found.check](found)}"
