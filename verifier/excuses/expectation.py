"""The expectation matrix: which anomalies the settings of a run permit, and which event excuses each. Pure.

An anomaly that is not listed here is forbidden. One that is listed is allowed only if the event that makes it legal is
in the evidence (``verifier.excuses.by_value``): the setting without the event allows nothing, nor does the event
without the setting. Each rule is tested by a control run with the protection off, which must show the anomaly. Two
things are deliberately not permitted by any acks setting: ``unseen`` (what is in the log below the high watermark is
delivered, however it was acknowledged) and ``inconsistent-offsets`` by a reader (readers are only handed what every
in-sync replica has, so a clean election never takes it back).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verifier.evidence.fault_kinds import UNCLEAN_ORDER
from verifier.evidence.run_model import RunModel, RunSettings

#: The events: an election cut the value off; a connection that carried it was lost; the client sent it again; a
#: delivery of its stream timed out while it was outstanding; a later batch was refused as out of order meanwhile; its
#: client never learned what became of it; its leader was replaced and led again while it was under way.
ELECTION, DISCONNECT, RETRY, TIMEOUT, UNANSWERED = "election", "disconnect", "retry", "timeout", "unanswered"
RETURNED, REFUSAL = "returned", "refusal"
EXCUSES = (ELECTION, DISCONNECT, RETRY, TIMEOUT, REFUSAL, UNANSWERED, RETURNED)

#: What each event is for people.
EVENTS: Mapping[str, str] = {
    ELECTION: "an election that the conductor saw",
    DISCONNECT: "a connection that the client lost",
    RETRY: "a retry by the client",
    TIMEOUT: "a delivery that timed out",
    REFUSAL: "a later batch that was refused as out of order",
    UNANSWERED: "a send whose outcome the client never learned",
    RETURNED: "a leader that was replaced and came back",
}


@dataclass(frozen=True, slots=True)
class Allowance:
    """``cause`` None stands for every cause of the check; ``excuse`` is the event without which nothing is allowed."""

    check: str
    cause: str | None
    excuse: str
    reason: str


class Expectation:
    """What is permitted in one run. ``by_order``: an unclean election was asked for, by a fault of that name."""

    def __init__(self, settings: RunSettings, *, by_order: bool = False) -> None:
        self.allowances = tuple(_rules(settings, by_order))

    @classmethod
    def of(cls, run: RunModel) -> Expectation:
        """Of this run, by its settings and by the faults that it was asked for."""
        return cls(run.settings, by_order=UNCLEAN_ORDER in run.faults_requested)

    def permitted(self, check: str, cause: str | None) -> str | None:
        """Why the settings permit this anomaly, given the event; None if they never do."""
        return next((each.reason for each in self._of(check, cause)), None)

    def reason(self, check: str, cause: str | None, excuse: str | None) -> str | None:
        """Why this anomaly is allowed, having this event in the evidence, or None if it is not."""
        return next((each.reason for each in self._of(check, cause) if each.excuse == excuse), None)

    def can_allow(self, check: str, excuse: str | None = None) -> bool:
        """Whether any event, or this one, could excuse anything of this check: only then need one look for events."""
        return any(each.check == check and excuse in (None, each.excuse) for each in self.allowances)

    def _of(self, check: str, cause: str | None) -> Iterator[Allowance]:
        return (each for each in self.allowances if each.check == check and each.cause in (None, cause))

    def __repr__(self) -> str:
        return f"Expectation({', '.join(sorted({allowance.check for allowance in self.allowances})) or 'nothing'})"


def _rules(settings: RunSettings, by_order: bool) -> Iterator[Allowance]:
    yield from _acknowledged_early(settings)
    yield from _repeated(settings)
    yield from _late(settings)
    yield from _unclean(settings, by_order)
    if settings.client == "confluent" and settings.retries > 0:
        for check in ("duplicate", "log-duplicate"):
            yield Allowance(
                check,
                "client-resend-after-error",
                TIMEOUT,
                "librdkafka sends what was in flight again under a new producer epoch after a delivery timed out "
                "(its issue 4953): the client's doing, not the cluster's",
            )
            if settings.idempotence:
                yield Allowance(
                    check,
                    "client-resend-after-error",
                    REFUSAL,
                    "librdkafka sends what was in flight again under a new producer epoch after a later batch was "
                    "refused as out of order, though an attempt before may have stored it (its issue 4953): the "
                    "client's doing, not the cluster's",
                )


def _acknowledged_early(settings: RunSettings) -> Iterator[Allowance]:
    """acks=0 and acks=1 acknowledge a batch before other replicas have it; if its leader dies then, it is lost."""
    if settings.acks not in ("0", "1"):
        return
    whom = "before the broker has it" if settings.acks == "0" else "when the leader alone has it"
    reason = f"acks={settings.acks}: a batch is acknowledged {whom}, and is lost if that leader fails"
    yield Allowance("lost-write", None, ELECTION, reason)
    yield Allowance("log-gap", "sequences", ELECTION, f"{reason}; later ones of the stream survive")
    yield Allowance(
        "inconsistent-offsets", "acknowledged", ELECTION, f"{reason}; the next leader gives its offset to another"
    )
    if settings.acks == "0":
        reason = "acks=0: a batch is acknowledged when it is sent, and is lost with the connection that carries it"
        yield Allowance("lost-write", None, DISCONNECT, reason)
        yield Allowance("log-gap", "sequences", DISCONNECT, f"{reason}; later ones of the stream survive")


def _repeated(settings: RunSettings) -> Iterator[Allowance]:
    """Without idempotence a retry is appended again; with several batches in flight it also changes their order."""
    if reason := _appended_again(settings):
        yield Allowance("duplicate", None, RETRY, reason)
        yield Allowance("log-duplicate", None, RETRY, reason)
        reason = _reordered(settings)
        if reason:
            yield Allowance("nonmonotonic-send", None, RETRY, reason)
            yield Allowance("log-reorder", "values", RETRY, reason)
    elif settings.unknown_producer != "gapless" and settings.retries > 0:
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
            yield Allowance(check, cause, RETRY, reason)


def _late(settings: RunSettings) -> Iterator[Allowance]:
    """Without idempotence a broker takes whatever arrives, however late: also what its client has given up."""
    if settings.idempotence:
        return
    reason = (
        "idempotence is off: a request that its client gave up with its connection may still be on its way, and "
        "arrives behind what was sent later on another one"
    )
    yield Allowance("nonmonotonic-send", None, UNANSWERED, reason)
    yield Allowance("log-reorder", "values", UNANSWERED, reason)
    if settings.acks != "0" and (settings.max_in_flight > 1 or settings.client == "confluent"):
        reason = (
            "idempotence is off with several batches in flight: one that waits on its way to a leader is overtaken by "
            "what its successor takes, and arrives when that leader leads again"
        )
        yield Allowance("nonmonotonic-send", None, RETURNED, reason)
        yield Allowance("log-reorder", "values", RETURNED, reason)


def _appended_again(settings: RunSettings) -> str:
    """Why a batch may be appended twice without idempotence; empty if it may not."""
    if settings.idempotence:
        return ""
    if settings.retries > 0:
        return "idempotence is off and retries are on: a batch whose answer was lost is appended again"
    if settings.client == "confluent":
        return (
            "idempotence is off, and librdkafka, even with retries=0, sends a batch again after an answer that asks "
            "for new metadata (seen with 2.16): it takes the batch for not stored and counts no retry, but one that "
            "waited for its followers when the leader epoch changed is in the log: the client's doing, not the "
            "cluster's"
        )
    return ""


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


def _unclean(settings: RunSettings, by_order: bool) -> Iterator[Allowance]:
    """An unclean election makes a replica leader that lacks committed batches: everything they carried may vanish.

    Where only orders permit it, the elections that count are those of the ordered partitions, from the order on until
    its fault was over (``verifier.excuses.elections``).
    """
    if settings.unclean_leader_election:
        reason = "unclean leader election is on: a replica that lacks committed batches may become leader"
    elif by_order:
        reason = f"{UNCLEAN_ORDER} ordered an unclean election: a replica that lacks committed batches became leader"
    else:
        return
    yield Allowance("lost-write", None, ELECTION, reason)
    yield Allowance("log-gap", "sequences", ELECTION, reason)
    yield Allowance("inconsistent-offsets", None, ELECTION, reason)
    yield Allowance("duplicate", "vanished", ELECTION, f"{reason}; a value that was read and lost is sent again")
    for check in ("poll-skip", "int-poll-skip", "nonmonotonic-poll", "int-nonmonotonic-poll"):
        cut_off = f"{reason}; a reader whose position is cut off continues where the log has something"
        yield Allowance(check, None, ELECTION, cut_off)
    for check in ("watermark-regression", "read-above-watermark"):
        yield Allowance(check, None, ELECTION, f"{reason}; the high watermark goes back with them")
