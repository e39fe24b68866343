"""The expectation matrix: which anomalies the settings of a run allow, and why. Pure.

What is not listed here is forbidden. Each rule is tested by a control run with the protection off, which must show the
anomaly. Two things are deliberately not allowed by any acks setting: ``unseen`` (what stands in the log below the high
watermark is delivered, however it was acknowledged) and ``inconsistent-offsets`` by a reader (readers are only handed
what every in-sync replica has, so a clean election never takes it back).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verifier.evidence.run_model import RunSettings


@dataclass(frozen=True, slots=True)
class Allowance:
    """``cause`` None stands for every cause of the check."""

    check: str
    cause: str | None
    reason: str


class Expectation:
    """What is allowed in one run."""

    def __init__(self, settings: RunSettings) -> None:
        self.allowances = tuple(_rules(settings))

    def reason(self, check: str, cause: str | None) -> str | None:
        """Why this anomaly is allowed, or None if it is not."""
        for allowance in self.allowances:
            if allowance.check == check and allowance.cause in (None, cause):
                return allowance.reason
        return None

    def __repr__(self) -> str:
        return f"Expectation({', '.join(sorted({allowance.check for allowance in self.allowances})) or 'nothing'})"


def _rules(settings: RunSettings) -> Iterator[Allowance]:
    yield from _acknowledged_early(settings)
    yield from _repeated(settings)
    yield from _unclean(settings)
    for check in ("duplicate", "log-duplicate"):
        yield Allowance(
            check,
            "client-resend-after-error",
            "librdkafka sends what was in flight again under a new producer epoch after a delivery timed out "
            "(its issue 4953): the client's doing, not the cluster's",
        )


def _acknowledged_early(settings: RunSettings) -> Iterator[Allowance]:
    """acks=0 and acks=1 acknowledge before other replicas have the batch; who dies then takes it along."""
    if settings.acks not in ("0", "1"):
        return
    whom = "before the broker has it" if settings.acks == "0" else "when the leader alone has it"
    reason = f"acks={settings.acks}: a batch is acknowledged {whom}, and is lost if that leader fails"
    yield Allowance("lost-write", None, reason)
    yield Allowance("log-gap", "sequences", f"{reason}; later ones of the stream survive")
    yield Allowance("inconsistent-offsets", "acknowledged", f"{reason}; the next leader gives its offset to another")


def _repeated(settings: RunSettings) -> Iterator[Allowance]:
    """Without idempotence a retry is appended again; with several batches in flight it also changes their order."""
    if not settings.idempotence and settings.retries > 0:
        reason = "idempotence is off and retries are on: a batch whose answer was lost is appended again"
        yield Allowance("duplicate", None, reason)
        yield Allowance("log-duplicate", None, reason)
        reason = _reordered(settings)
        if reason:
            yield Allowance("nonmonotonic-send", None, reason)
            yield Allowance("log-reorder", "values", reason)
    if settings.idempotence and settings.unknown_producer != "gapless":
        reason = (
            f"gapless.unknown.producer={settings.unknown_producer}: a broker that has forgotten a producer "
            "cannot tell its retries"
        )
        for check, cause in (
            ("duplicate", None),
            ("log-duplicate", None),
            ("nonmonotonic-send", None),
            ("log-reorder", "values"),
            ("sequence-duplicate", None),
            ("sequence-gap", None),
        ):
            yield Allowance(check, cause, reason)


def _reordered(settings: RunSettings) -> str:
    """Why a retry without idempotence may change the order; empty if it may not."""
    if settings.max_in_flight > 1:
        return (
            f"idempotence is off with {settings.max_in_flight} batches in flight: "
            "a retried batch may come behind a later one"
        )
    if settings.client == "confluent":
        return (
            "idempotence is off, and librdkafka, even with one batch in flight, has the next request ready and sends "
            "it before it retries what was refused (seen with 2.16; compare its issue 1092): the client's doing, not "
            "the cluster's"
        )
    return ""


def _unclean(settings: RunSettings) -> Iterator[Allowance]:
    """An unclean election makes a replica leader that lacks committed batches: everything they carried may vanish."""
    if not settings.unclean_leader_election:
        return
    reason = "unclean leader election is on: a replica that lacks committed batches may become leader"
    yield Allowance("lost-write", None, reason)
    yield Allowance("log-gap", "sequences", reason)
    yield Allowance("inconsistent-offsets", None, reason)
    yield Allowance("sequence-gap", None, reason)
    yield Allowance("duplicate", "vanished", f"{reason}; a value that was read and lost is sent again")
