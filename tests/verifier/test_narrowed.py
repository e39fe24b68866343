"""A run on a cluster that others started: what is not asked, what is still due, and that the verdict says so."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from tests.verifier.test_verdict import a_run, closing, decide, facts, found
from verifier.evidence.run_model import ChildProcess
from verifier.facts import Audit, ReplicaFiles
from verifier.narrowed import due_files, given_files, narrowing
from verifier.report.junit import junit_xml
from verifier.report.summary import summary_md
from verifier.report.words import headline

IN_SYNC = {"under-min-isr", "watermark-under-min-isr"}
BESIDE = {"torn-tail", "checkpoint-mismatch", "snapshot-mismatch", "aborted-index-audit", "index-mismatch"}


def foreign(*replica_dirs, **changes):
    """A run as ``a_run``, on a cluster of others."""
    own = a_run().settings
    run = a_run(settings=replace(own, target="kafka://h:1", replica_dirs=replica_dirs))
    others = [child for child in run.children if not child.name.startswith("broker-")]
    told = {"children": [*others, ChildProcess("relays", 99, 1.0, 0)], "producer_ids_below": None}
    return replace(run, **{**told, **changes})


def logs(*brokers):
    """Facts that have the logs of these brokers alone."""
    kept = tuple(ReplicaFiles(each, "t", 0, 1, 900, 900, 9, 900, 25) for each in brokers)
    return facts(replicas=kept, segments_listed=len(kept))


def without_ids(*brokers):
    """What closes the evidence, with the partition.metadata of these brokers alone."""
    known = closing()
    return replace(known, topic_ids={key: each for key, each in known.topic_ids.items() if key[0] in brokers})


def test_a_run_of_our_own_is_not_narrowed():
    """Where gapless started the cluster everything is asked, and the verdict says nothing else."""
    verdict = decide(a_run(), Audit(facts()), closing())
    assert (verdict.verdict, verdict.narrowed) == ("valid", ())
    assert not [check for check in verdict.checks.values() if check.unasked]
    assert decide(a_run(), Audit(logs(1)), closing()).verdict == "unknown"


def test_a_leaders_log_suffices_and_the_verdict_says_what_it_does_not_tell(tmp_path):
    """Valid by clients and one log a partition; each check that was not asked is unknown, with its reason."""
    run = foreign()
    leader = run.final[0].leader
    verdict = decide(run, Audit(logs(leader)), without_ids())
    assert (verdict.verdict, verdict.doubts) == ("valid", ())
    unasked = {check.name for check in verdict.checks.values() if check.unasked}
    assert unasked == {*BESIDE, "unknown-producer-id", *IN_SYNC, "log-divergence", "internal-divergence"}
    assert all(verdict.checks[name].state == "unknown" for name in unasked)
    written = verdict.to_json()
    assert written["narrowed"] == list(verdict.narrowed) and written["checks"]["torn-tail"]["valid"] == "unknown"
    assert "10 checks were not asked" in headline(verdict)
    summary = summary_md(run, (), verdict)
    assert "What this verdict says nothing about" in summary and "log-divergence" in summary
    suite = ET.fromstring(junit_xml(tmp_path, run, verdict))
    assert suite.get("skipped") == "10" and suite.get("errors") == "0"


def test_replica_files_that_were_given_are_due():
    """With directories the replicas are compared; one that was promised and is not there makes the run unknown."""
    whole = foreign("1=/a", "2=/b", "3=/c")
    verdict = decide(whole, Audit(facts()), closing())
    assert verdict.verdict == "valid" and verdict.checks["log-divergence"].unasked is None
    assert decide(whole, Audit(logs(1, 2)), closing()).verdict == "unknown"
    some = foreign("2=/b")
    assert given_files(some) == {2}
    assert due_files(some, some.final[0]) == {2, some.final[0].leader}
    assert any("brokers 1, 3" in line for line in narrowing(some).lines)
    assert decide(some, Audit(logs(some.final[0].leader)), without_ids(2)).verdict == (
        "valid" if some.final[0].leader == 2 else "unknown"
    )


def test_a_topic_id_that_no_one_told_at_the_end_is_missed():
    """Others may have created the topic again: without the id that the cluster tells then, and without files of a
    replica that have it, the run is unknown. The files of one replica suffice."""
    whole = foreign(final_topic_ids={"t": foreign().topics[0].topic_id})
    unasked = replace(whole, final_topic_ids={})
    leader = whole.final[0].leader
    assert decide(whole, Audit(logs(leader)), without_ids()).verdict == "valid"
    verdict = decide(unasked, Audit(logs(leader)), without_ids())
    assert verdict.verdict == "unknown"
    assert any("topic id of t at the end is unknown" in doubt for doubt in verdict.doubts)
    given = foreign(f"{leader}=/a", final_topic_ids={})
    assert decide(given, Audit(logs(leader)), without_ids(leader)).verdict == "valid"
    assert decide(replace(a_run(), final_topic_ids={}), Audit(facts()), closing()).verdict == "valid"


def test_a_leaders_log_is_due():
    """Without the log of its leader a partition cannot be judged: unknown, never a silent pass."""
    run = foreign()
    other = next(broker for broker in (1, 2, 3) if broker != run.final[0].leader)
    assert decide(run, Audit(logs(other)), without_ids()).verdict == "unknown"


@pytest.mark.parametrize("name", ["proxy", "broker-1"])
def test_a_run_of_our_own_that_claims_others_is_unknown(name):
    """Relays were before the links of its clients, and no broker was its child."""
    run = foreign()
    others = [child for child in run.children if child.name != "relays"]
    forged = replace(run, children=[*others, ChildProcess(name, 98, 1.0, 0)])
    verdict = decide(forged, Audit(logs(run.final[0].leader)), without_ids())
    assert verdict.verdict == "unknown" and "run.json has no process of the relays" in verdict.doubts
    assert ("run.json names a process broker-1, which the run did not declare" in verdict.doubts) is (
        name == "broker-1"
    )


@pytest.mark.parametrize("name", ["lost-write", "log-divergence", "torn-tail"])
def test_what_is_found_counts(name):
    """An anomaly is one, also of a check that is otherwise not asked there."""
    run = foreign()
    verdict = decide(run, Audit(logs(run.final[0].leader), (found(name),)), without_ids())
    assert verdict.verdict == "invalid" and verdict.checks[name].unasked is None
