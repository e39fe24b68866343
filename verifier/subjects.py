"""What a run has of what some checks are about. Without it they had nothing to judge, and the verdict says so.

Owns the search; decides nothing: such a check found nothing either way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from verifier.anomalies import BY_NAME
from verifier.anomalies.model import Subject
from verifier.completeness.declared import transforms
from verifier.coordinators.logs import TOPICS
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.transactions.evidence import has_transactions
from verifier.transactions.transaction_checks import bank_of
from verifier.verdict import CheckResult, Verdict


def subjects_of(directory: RunDirectory, run: RunModel) -> frozenset[Subject]:
    """What is there to be judged. If the coordinators have their topic, there were transactions, declared or not."""
    return frozenset(_found(directory, run))


def with_idle(verdict: Verdict, subjects: Collection[Subject]) -> Verdict:
    """The verdict of a run that has these ``subjects``: what else found nothing had nothing to judge. Pure."""
    return replace(verdict, checks={name: _idle(check, subjects) for name, check in verdict.checks.items()})


def _idle(check: CheckResult, subjects: Collection[Subject]) -> CheckResult:
    about = BY_NAME[check.name].about
    found_nothing = check.state == "valid" and not check.count
    return replace(check, idle=about) if found_nothing and about not in subjects else check


def _found(directory: RunDirectory, run: RunModel) -> Iterator[Subject]:
    if has_transactions(directory, run):
        yield "transactions"
        if bank_of(run) is not None:
            yield "bank"
    if _has_topics_of_coordinators(directory):
        yield "topics of coordinators"
    if run.settings.idempotence:
        yield "idempotent producers"
    if run.settings.acks == "all":
        yield "acks=all"
    if run.settings.replication_factor > 1:
        yield "followers"
    if not run.may_elect_uncleanly:
        yield "end that no election may take back"
    if run.evidence.of_role("members"):
        yield "consumer groups"
        if transforms(run):
            yield "group with an output"


def _has_topics_of_coordinators(directory: RunDirectory) -> bool:
    """Those that no run creates itself, and what a group writes to."""
    data = [directory.node(broker) / "data" for broker in directory.broker_ids()]
    return any(next(each.glob(f"{topic}-*"), None) is not None for each in data for topic in TOPICS)
