"""Planted bugs of our own clients, to show that the oracle would see them as it sees a broker without a rule.

Owns the wrong logic, and its way into the clients of one simulation. Those of the sender's parts are
``tests.cluster.client.producer.planted``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from unittest.mock import patch

from cluster.client import wiring
from cluster.client.client_metadata import ClientMetadata
from cluster.client.consumer import consumer_calls
from cluster.client.consumer.fetch_plans import Fetch
from cluster.client.consumer.fetching import FetchCore
from cluster.client.producer import batch_results, outcomes, parts
from cluster.client.producer.outcomes import BatchFacts, BatchOutcome, BatchStep
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.planted import PutsRetriesAtTheEnd, RestartsInFlight


class NeverAsksAgain(ClientMetadata):
    """That metadata turned out to be old is forgotten: they are asked for at their age alone."""

    def request_update(self) -> int:
        return self.version


class ReadsAgain(FetchCore):
    """After a lost connection the consumer begins again one record before its position."""

    def fetch_failed(self, fetch: Fetch) -> None:
        super().fetch_failed(fetch)
        for partition in self.assignment:
            if partition.is_idle and partition.position:
                self.assignment.place(partition, partition.position - 1)


def _a_timeout_is_success(error_code: ErrorCode, facts: BatchFacts) -> BatchOutcome:
    """A batch whose answer is lost is taken for stored."""
    if error_code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
        return BatchOutcome(BatchStep.COMPLETE, is_offset_known=False)
    return outcomes.produce_outcome(error_code, facts)


#: Name -> (module, name in it, what stands there instead).
PLANTS: dict[str, tuple[object, str, Callable]] = {
    "retries-at-the-end": (parts, "RecordAccumulator", PutsRetriesAtTheEnd),
    "restarts-in-flight": (parts, "ProducerIdentity", RestartsInFlight),
    "a-timeout-is-success": (batch_results, "produce_outcome", _a_timeout_is_success),
    "never-asks-again": (wiring, "ClientMetadata", NeverAsksAgain),
    "reads-again": (consumer_calls, "FetchCore", ReadsAgain),
}


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Clients made meanwhile have this bug; with None they are correct."""
    if name is None:
        yield
        return
    with patch.object(*PLANTS[name]):
        yield
