"""Every anomaly by name: a summary for people, its causes, and which others it may bring about. Plain data, no Spark.

The definition of each is the docstring of its check; ``docs/anomalies.md`` is made from both, and a test holds
them together. Each module of this package is one group of anomalies; this one puts them in order.
"""

from __future__ import annotations

from collections.abc import Mapping

from verifier.anomalies import files, groups, headers, readers, serving, timing, transactions, values
from verifier.anomalies.model import Anomaly
from verifier.facts import explained

__all__ = ["ANOMALIES", "BY_NAME", "NAMES", "Anomaly", "group"]

#: In the order in which a report leads with them: what destroys evidence first, what merely shows it last.
ANOMALIES: tuple[Anomaly, ...] = (
    *values.ANOMALIES,
    *transactions.ANOMALIES,
    *groups.ANOMALIES,
    *headers.ANOMALIES,
    *files.ANOMALIES,
    *readers.ANOMALIES,
    *timing.ANOMALIES,
    *serving.ANOMALIES,
)

BY_NAME: Mapping[str, Anomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}
NAMES: tuple[str, ...] = tuple(BY_NAME)


def group(places: Mapping[str, frozenset[tuple[str, int]]]) -> dict[str, str]:
    """Which anomaly explains which: consequence -> cause.

    ``places`` has the partitions in which each anomaly was found. One explains another only where it occurs itself:
    every partition with the consequence must have the cause.
    """
    return explained(((anomaly.name, anomaly.brings) for anomaly in ANOMALIES), places)
