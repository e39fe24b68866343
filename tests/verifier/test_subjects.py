"""Checks of what a run does not have: they had nothing to judge, and verdict, report and JUnit say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest

from tests.support.settings import settings
from tests.verifier.planted import clean
from tests.verifier.test_verdict import a_run, closing, decide, facts, found
from verifier.anomalies import BY_NAME
from verifier.anomalies.model import Subject
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit
from verifier.report.junit import junit_xml
from verifier.subjects import subjects_of, with_idle

ALL: tuple[Subject, ...] = get_args(Subject)
#: What a run without options has.
USUAL: tuple[Subject, ...] = ("idempotent producers", "acks=all", "followers", "end that no election may take back")


@pytest.mark.parametrize("there", [(), ("transactions",), ("consumer groups", "group with an output"), ALL])
def test_a_check_without_a_subject_had_nothing_to_judge(there: tuple[Subject, ...], tmp_path: Path) -> None:
    """It stays valid, with the reason beside it; to CI it was skipped. A check with a subject is as it was."""
    verdict = with_idle(decide(a_run(), Audit(facts()), closing()), there)
    assert verdict.verdict == "valid"
    idle = {name for name, check in verdict.checks.items() if check.idle}
    assert idle == {name for name, each in BY_NAME.items() if each.about and each.about not in there}
    assert ("G1a" in idle) == ("transactions" not in there) and "lost-write" not in idle
    checks = verdict.to_json()["checks"]
    assert {name for name, check in checks.items() if check["idle"]} == idle
    assert all(checks[name]["valid"] is True for name in idle)
    suite = ET.fromstring(junit_xml(tmp_path, a_run(), verdict))
    assert (suite.get("skipped"), suite.get("errors")) == (str(len(idle)), "0")
    skipped = {
        each.get("name"): each.find("skipped").get("message") for each in suite if each.find("skipped") is not None
    }
    assert skipped.get("bank-total") == (None if "bank" in there else "nothing to judge: the run has no bank")


def test_what_is_found_counts_whatever_the_run_was_to_have() -> None:
    """No finding is hidden because a run was not to have its subject."""
    audit = Audit(facts(), (found("marker-audit", "stray"),))
    verdict = with_idle(decide(a_run(), audit, closing()), ())
    assert verdict.verdict == "invalid"
    assert verdict.checks["marker-audit"].idle is None and verdict.checks["marker-audit"].state == "invalid"


def test_with_the_topic_of_coordinators_there_were_transactions(tmp_path: Path) -> None:
    """Also where the workload has none: others may have used the cluster."""
    story = clean()
    directory, run = story.write(tmp_path), story.model()
    assert subjects_of(directory, run) == {*USUAL}
    (directory.node(1) / "data" / "__transaction_state-0").mkdir(parents=True)
    assert subjects_of(RunDirectory(directory.path), run) == {"transactions", "topics of coordinators", *USUAL}
    (directory.node(1) / "data" / "__transaction_state-0").rename(directory.node(1) / "data" / "__consumer_offsets-0")
    assert subjects_of(RunDirectory(directory.path), run) == {"topics of coordinators", *USUAL}


@pytest.mark.parametrize(
    ("changes", "faults", "lacks", "idle"),
    [
        (
            {"idempotence": False},
            [],
            "idempotent producers",
            {"sequence-gap", "sequence-duplicate", "producer-epoch-regression"},
        ),
        ({"idempotence": False, "acks": "1"}, [], "acks=all", {"under-min-isr"}),
        ({"replication_factor": 1}, [], "followers", {"log-divergence"}),
        ({"unclean_leader_election": True}, [], "end that no election may take back", {"wrong-end-offset"}),
        ({}, ["elect-unclean"], "end that no election may take back", {"wrong-end-offset"}),
    ],
    ids=["no idempotence", "acks=1", "one replica", "unclean by setting", "unclean by order"],
)
def test_what_the_settings_leave_nothing_of(
    changes: dict[str, Any], faults: list[str], lacks: Subject, idle: set[str], tmp_path: Path
) -> None:
    """Then a check passes whatever the cluster does, and is not said to have passed; in a usual run it is."""
    story = clean()
    directory, usual = story.write(tmp_path), story.model()
    run = replace(usual, settings=settings(**changes), faults_requested=faults)
    found = subjects_of(directory, run)
    assert lacks not in found and lacks in subjects_of(directory, usual)
    verdict = decide(a_run(), Audit(facts()), closing())
    now = {name for name, check in with_idle(verdict, found).checks.items() if check.idle}
    before = {name for name, check in with_idle(verdict, {*found, lacks}).checks.items() if check.idle}
    assert now - before == idle
