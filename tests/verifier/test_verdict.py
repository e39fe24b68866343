"""The verdict: the lattice, what is allowed, what explains what, and the lines and objects that tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.closed import agreeing, shaped
from tests.support.settings import experiment_of
from tests.support.settings import settings as run_settings
from tests.support.stories import Story, clean
from verifier import verdict as rules
from verifier.anomalies import ANOMALIES, BY_NAME, NAMES, group
from verifier.closing.closing import Closing, gather
from verifier.doubts import JOURNALS, Doubt
from verifier.evidence.run_model import RunModel, RunSettings
from verifier.evidence.seal import Difference
from verifier.excuses.expectation import (
    DISCONNECT,
    ELECTION,
    EXCUSES,
    REFUSAL,
    RETRY,
    RETURNED,
    TIMEOUT,
    UNANSWERED,
    Expectation,
)
from verifier.facts import Audit, Facts, Found, Gap, ReaderReach, Region, ReplicaFiles
from verifier.report.summary import summary_md
from verifier.report.tiles import tiles
from verifier.telling.result_lines import result_lines
from verifier.verdict import Verdict, undecidable, worst
from verifier.witness.effectiveness import FaultRecord, Injected


def a_run(**changes: Any) -> RunModel:
    """A run of one partition on three brokers, settled and without faults."""
    whole = clean().model()
    if "settings" in changes:
        changes["settings"] = shaped(changes["settings"], whole.evidence)
    settings = changes.get("settings", whole.settings)
    config = next((topic.config for topic in changes.get("topics", whole.topics)), {})
    changes["experiment"] = experiment_of(settings, config, changes.get("faults_requested", whole.faults_requested))
    return replace(whole, **changes)


def facts(**changes: Any) -> Facts:
    """Complete evidence of ``a_run``."""
    final = a_run().final[0]
    return replace(
        Facts(
            acked=24, read=50, final_read=25,
            readers=(ReaderReach("run", "final-1", "t", 0, 1, 24, True),),
            replicas=tuple(ReplicaFiles(b, "t", 0, 1, 900, 900, 9, 900, 25) for b in final.log_end_offsets),
            segments_listed=3,
            sentinels=frozenset({("t", 0)}),
        ),
        **changes,
    )  # fmt: skip


def closing_of(story: Story) -> Closing:
    """What closes the evidence of a story."""
    with TemporaryDirectory() as path:
        return gather(story.write(Path(path)), story.model())


@cache
def _closing() -> Closing:
    return closing_of(clean())


def closing(*injected: Injected, **changes: Any) -> Closing:
    """What closes the evidence of ``a_run``, with these injections."""
    return replace(_closing(), **{"faults": FaultRecord(tuple(injected)), **changes})


def decide(run: RunModel, audit: Audit, closing: Closing, further: Sequence[Doubt] = ()) -> Verdict:
    """The verdict of a run whose evidence agrees with its settings."""
    return rules.decide(run, audit, agreeing(run, closing), further)


def found(check: str, cause: str | None = None, partition: int = 0, count: int = 1, excuse: str | None = None) -> Found:
    """An anomaly as a check reports it, with the event that excuses it."""
    details = {
        "lost-write": {"reads": 0}, "duplicate": {"first_read": 1, "last_read": 2},
        "log-duplicate": {"first_log": 1, "last_log": 2}, "log-gap": {"last_sequence": 5},
        "nonmonotonic-send": {"after_sequence": 9, "after_offset": 3},
        "log-reorder": {"after_sequence": 9, "after_offset": 3},
        "log-corrupt": {"broker": 1, "segment": 0, "position": 0, "problem": "its CRC is wrong"},
    }  # fmt: skip
    event = None if excuse is None else f"the very {excuse}"
    return Found(
        check, cause, "t", partition, count, count, 1, 4, 7, 1, details.get(check, {}), excuse=excuse, event=event
    )


def audit(*anomalies: Found, **changes: Any) -> Audit:
    """An audit of complete evidence."""
    regions = (Region(True, True, True, 24),)
    whole = Audit(facts(), found=anomalies, gaps=(Gap("t", 0, 5_000_000, 10, 5_000_010),), regions=regions)
    return replace(whole, **changes)


def test_complete_evidence_and_nothing_found_is_valid() -> None:
    """Valid takes complete evidence and nothing found; there is no other way."""
    verdict = decide(a_run(), audit(), closing())
    assert (verdict.verdict, verdict.reasons) == ("valid", ())
    assert verdict.to_json()["valid"] is True
    assert set(verdict.checks) == set(NAMES)


@pytest.mark.parametrize("states", list(product(["valid", "unknown", "invalid"], repeat=2)))
def test_invalid_outranks_unknown_outranks_valid(states: tuple[Any, Any]) -> None:
    """The lattice, pair by pair; the order does not matter."""
    expected = next(state for state in ("invalid", "unknown", "valid") if state in states)
    assert worst(states) == worst(states[::-1]) == expected


def test_an_anomaly_in_incomplete_evidence_is_invalid_all_the_same() -> None:
    """Incomplete evidence hides nothing: both are said, what was found first."""
    verdict = decide(a_run(interrupted=True), audit(found("lost-write")), closing())
    assert verdict.verdict == "invalid"
    assert verdict.reasons[0].startswith("lost-write")
    assert "the run was interrupted" in verdict.reasons
    assert verdict.checks["unseen"].state == "unknown"


def test_checks_without_their_evidence_accuse_nobody() -> None:
    """What a check found in evidence that cannot be believed is withheld; what the log alone shows still counts."""
    damaged = closing(differences=(Difference("history/producer-1.arrow", "changed"),))
    verdict = decide(a_run(), audit(found("lost-write"), found("phantom", "failed")), damaged)
    assert verdict.verdict == "unknown"
    assert verdict.checks["lost-write"].withheld
    assert (verdict.checks["lost-write"].count, verdict.accusations) == (0, ())
    assert "history/producer-1.arrow: changed since the run was sealed" in verdict.doubts
    assert any(
        doubt.startswith("checks withheld because they need that evidence: lost-write") for doubt in verdict.doubts
    )
    by_the_log = decide(a_run(), audit(found("lost-write"), found("log-corrupt", "batch")), damaged)
    assert by_the_log.verdict == "invalid"
    assert by_the_log.accusations == ("log-corrupt: bytes on disk are not what was written (1)",)


def test_a_changed_account_of_the_run_blinds_everything() -> None:
    """Nothing can be judged by settings and final states that somebody changed."""
    anomalies = [found(name, next(iter(BY_NAME[name].causes), None)) for name in NAMES if name in _EXPLAINED]
    verdict = decide(a_run(), audit(*anomalies), closing(differences=(Difference("run.json", "changed"),)))
    assert verdict.verdict == "unknown"
    assert all(check.withheld for check in verdict.checks.values())


_EXPLAINED = ("lost-write", "duplicate", "log-gap", "nonmonotonic-send")


def test_faults_that_did_not_bite_make_unknown() -> None:
    """A run without effective faults is never valid, though its checks found nothing."""
    missed = Injected("kill-leader", "b1", 1, 2, effective=False, skipped=False, probe={})
    verdict = decide(a_run(faults_requested=["kill-leader"]), audit(), closing(missed))
    assert verdict.verdict == "unknown"
    assert verdict.checks["lost-write"].state == "valid"
    assert verdict.reasons == (
        "ineffective: kill-leader never bit", "ineffective: 0 of 1 injected faults bit",
    )  # fmt: skip


def test_a_check_that_failed_is_unknown_and_says_why() -> None:
    """An exception in one check is not a finding, and not an acquittal."""
    verdict = decide(a_run(), audit(failures={"unseen": "out of memory"}), closing())
    assert verdict.verdict == "unknown"
    assert verdict.checks["unseen"].to_json()["valid"] == "unknown"
    assert verdict.reasons == ("check unseen could not be made: out of memory",)


def test_what_the_settings_allow_is_shown_and_does_not_count() -> None:
    """Allowed anomalies leave the run valid and appear with their reason and the event that excuses them."""
    settings = run_settings(idempotence=False, rate=0.0)
    repeated = found("duplicate", "unidentified", count=3, excuse=RETRY)
    verdict = decide(a_run(settings=settings), audit(repeated), closing())
    assert verdict.verdict == "valid"
    check = verdict.to_json()["checks"]["duplicate"]
    assert (check["valid"], check["allowed"], check["count"]) == (True, True, 3)
    example = check["examples"][0]
    assert "idempotence is off" in example["allowed"] and example["allowed"].endswith("; the very retry")
    assert (example["excuse"], example["event"]) == ("retry", "the very retry")


@pytest.mark.parametrize("excuse", [None, ELECTION, DISCONNECT, TIMEOUT])
def test_a_setting_without_its_event_allows_nothing(excuse: str | None) -> None:
    """Nor does another event stand in for it; and both kinds of one check are counted apart."""
    bare = found("duplicate", "unidentified", count=2, excuse=excuse)
    excused = found("duplicate", "unidentified", count=3, excuse=RETRY)
    verdict = decide(a_run(settings=run_settings(idempotence=False, rate=0.0)), audit(excused, bare), closing())
    check = verdict.checks["duplicate"]
    assert (verdict.verdict, check.count, check.allowed_count) == ("invalid", 5, 3)
    assert [example.allowed is None for example in check.examples] == [True, False]


@pytest.mark.parametrize("path", ["leaders.jsonl", "faults.jsonl", "history/reader-1.arrow"])
def test_what_may_have_lost_its_excuse_accuses_nobody(path: str) -> None:
    """Where the evidence of excuses is damaged, what the settings permit is not judged; all else still is."""
    damaged = closing(differences=(Difference(path, "changed"),))
    run = a_run(settings=run_settings(idempotence=False, rate=0.0))
    bare = found("log-duplicate", "unidentified", count=2)
    verdict = decide(run, audit(bare), damaged)
    check = verdict.checks["log-duplicate"]
    assert (verdict.verdict, check.state, check.count, check.withheld) == ("unknown", "unknown", 0, True)
    assert any(doubt.startswith("checks withheld because") and "log-duplicate" in doubt for doubt in verdict.doubts)
    assert decide(run, audit(bare), closing()).verdict == "invalid", "nothing is damaged here"
    assert decide(a_run(), audit(bare), damaged).verdict == "invalid", "no event would excuse it here"
    beside = decide(run, audit(bare, found("log-reorder", "offsets")), damaged)
    assert (beside.verdict, beside.checks["log-reorder"].state) == ("invalid", "invalid")


DELETED = replace(a_run(), final=[replace(each, log_start_offset=3) for each in a_run().final])


@pytest.mark.parametrize("path", ["nodes/2/control.jsonl", "history/reader-1.arrow"])
def test_a_damaged_journal_accuses_no_follower_of_what_it_may_have_deleted(path: str) -> None:
    """Where records were deleted, replicas are compared from where their journals say; elsewhere none is asked."""
    damaged = closing(differences=(Difference(path, "changed"),))
    lacking = found("log-divergence", "missing")
    verdict = decide(DELETED, audit(lacking), damaged)
    assert (verdict.verdict, verdict.checks["log-divergence"].withheld) == ("unknown", True)
    assert decide(a_run(), audit(lacking), damaged).verdict == "invalid", "nothing was deleted here"
    assert decide(DELETED, audit(lacking), closing()).verdict == "invalid", "nothing is damaged here"
    beside = decide(DELETED, audit(lacking, found("log-corrupt", "batch")), damaged)
    assert (beside.verdict, beside.checks["log-corrupt"].state) == ("invalid", "invalid")


def test_a_journal_that_cannot_be_read_accuses_no_follower() -> None:
    """With an unreadable journal log-divergence is withheld if anything was deleted."""
    unreadable = Doubt("the journal of broker 2 cannot be read", JOURNALS)
    lacking = found("log-divergence", "missing")
    verdict = decide(DELETED, audit(lacking), closing(), [unreadable])
    assert (verdict.verdict, verdict.checks["log-divergence"].withheld) == ("unknown", True)
    assert verdict.doubts[0] == unreadable.reason
    verdict = decide(a_run(), audit(lacking), closing(), [unreadable])
    assert (verdict.verdict, verdict.doubts[0]) == ("invalid", unreadable.reason)
    assert [name for name, check in verdict.checks.items() if check.withheld] == [
        "under-min-isr",
        "watermark-under-min-isr",
    ]


@pytest.mark.parametrize("excuse", EXCUSES)
def test_an_event_without_its_setting_allows_nothing(excuse: str) -> None:
    """Elections, lost connections and retries happen in every run; acks=all and idempotence are there to bear them."""
    anomalies = [found("lost-write", excuse=excuse), found("duplicate", "broker", excuse=excuse)]
    anomalies.append(found("log-reorder", "values", excuse=excuse))
    verdict = decide(a_run(), audit(*anomalies), closing())
    assert {check.name: check.forbidden_count for check in verdict.checks.values() if check.count} == {
        "lost-write": 1, "duplicate": 1, "log-reorder": 1,
    }  # fmt: skip


def test_without_acknowledgements_a_lost_connection_excuses_a_loss() -> None:
    """With acks=0 alone: with acks=1 the leader had it."""
    lost = found("lost-write", excuse=DISCONNECT)
    runs = [a_run(settings=run_settings(acks=acks, idempotence=acks == "all", rate=0.0)) for acks in ("0", "1", "all")]
    verdicts = [decide(run, audit(lost), closing()).verdict for run in runs]
    assert verdicts == ["valid", "invalid", "invalid"]


def test_one_that_is_not_allowed_beside_one_that_is_counts() -> None:
    """The two are told apart by their cause, within one check."""
    anomalies = [found("duplicate", "client-resend-after-error", count=2, excuse=TIMEOUT)]
    anomalies.append(found("duplicate", "broker", 1, count=5, excuse=TIMEOUT))
    verdict = decide(a_run(), audit(*anomalies), closing())
    check = verdict.to_json()["checks"]["duplicate"]
    assert (check["valid"], check["allowed"], check["count"], check["allowed_count"]) == (False, False, 7, 2)
    assert check["examples"][0]["cause"] == "broker"


def test_consequences_are_grouped_under_their_cause() -> None:
    """The reasons lead with the cause and name what it explains."""
    anomalies = [found("lost-write", count=4), found("log-gap", "sequences"), found("inconsistent-offsets", "read")]
    verdict = decide(a_run(), audit(*anomalies), closing())
    assert verdict.accusations == (
        "lost-write: a value was acknowledged and is not in the log (4); "
        "it explains inconsistent-offsets (1), log-gap (1)",
    )
    assert verdict.leader("log-gap") == "lost-write"


def test_nothing_is_explained_in_a_partition_without_the_cause() -> None:
    """What also happens elsewhere stands for itself."""
    here, there = frozenset({("t", 0)}), frozenset({("t", 0), ("t", 1)})
    assert group({"lost-write": here, "log-gap": here}) == {"log-gap": "lost-write"}
    assert group({"lost-write": here, "log-gap": there}) == {}


def test_an_allowed_cause_explains_nothing_away() -> None:
    """If the cause is allowed and the consequence is not, the consequence leads."""
    settings = run_settings(acks="1", idempotence=False)
    anomalies = [found("lost-write", excuse=ELECTION), found("inconsistent-offsets", "read", excuse=ELECTION)]
    verdict = decide(a_run(settings=settings), audit(*anomalies), closing())
    assert verdict.accusations == ("inconsistent-offsets: two sources disagree about what is at an offset (1)",)


def test_possible_consequences_are_anomalies_and_no_circle() -> None:
    """Every consequence has a name that exists, and nothing explains itself over others."""
    for anomaly in ANOMALIES:
        assert set(anomaly.brings) <= set(NAMES)

    def reachable(name: str, seen: frozenset[str]) -> set[str]:
        assert name not in seen
        return {name}.union(*(reachable(each, seen | {name}) for each in BY_NAME[name].brings))

    for name in NAMES:
        reachable(name, frozenset())


def test_the_result_lines_are_as_scripts_expect_them() -> None:
    """Counts of what is not allowed, and of what is, by name."""
    anomalies = [found("lost-write", count=2), found("log-gap", "sequences"), found("duplicate", "client-resend", 1)]
    anomalies.append(found("log-duplicate", "client-resend-after-error", count=3, excuse=TIMEOUT))
    verdict = decide(a_run(), audit(*anomalies), closing()).to_json()
    lines = result_lines(verdict, seed=7, report="r.html", repro="gapless run")
    assert lines == [
        "RESULT invalid seed=7 acked=24 read=24 anomalies=lost-write:2,duplicate:1,log-gap:1 allowed=log-duplicate:3",
        "report: r.html",
        "repro: gapless run",
    ]
    clean_lines = result_lines(decide(a_run(), audit(), closing()).to_json(), seed=7, report="r", repro="x")
    assert clean_lines[0] == "RESULT valid seed=7 acked=24 read=24 anomalies=none allowed=none"
    assert result_lines(undecidable("x").to_json(), seed=1, report="r", repro="x")[0] == (
        "RESULT unknown seed=1 acked=? read=? anomalies=? allowed=?"
    ), "nobody counted"


def test_what_was_not_counted_is_not_zero() -> None:
    """Without the final reader's history there is no number of what was read, and withheld checks found nothing."""
    closed = closing()
    lacking = replace(closed, accounts=tuple(each for each in closed.accounts if each.process != "final-1"))
    verdict = decide(a_run(), audit(), lacking)
    assert not {"read", "acked_and_read"} & verdict.stats.keys()
    line = result_lines(verdict.to_json(), repro="x")[0]
    assert line == "RESULT unknown acked=24 read=? anomalies=? allowed=?"
    assert "| read by final readers | ? |" in summary_md(a_run(), [], verdict)
    lacking = replace(closed, accounts=tuple(each for each in closed.accounts if each.process != "producer-1"))
    line = result_lines(decide(a_run(), audit(found("log-corrupt", "batch")), lacking).to_json(), repro="x")[0]
    assert line == "RESULT invalid acked=? read=24 anomalies=log-corrupt:1 allowed=?", "what was found stays"


def test_faults_that_were_planned_and_never_injected_are_told() -> None:
    """Not ``0 of 0``, and no tile that says that there were none to inject."""
    run = a_run()
    planned = replace(run, evidence=replace(run.evidence, planned_faults=1))
    verdict = decide(planned, audit(), closing())
    assert "| faults that bit | 0 of 0 (1 planned) |" in summary_md(planned, [], verdict)
    assert "| faults that bit | 0 of 0 |" in summary_md(run, [], verdict)
    told = [tile[:1] + tile[2:] for tile in tiles(planned, verdict, [], [], None) if tile[1] == "faults that bit"]
    assert told == [("0 / 1", "planned, and never injected")]


def test_what_was_counted_stays_counted() -> None:
    """A run that is unknown for another reason has its numbers, and no check of it is withheld."""
    verdict = decide(a_run(faults_requested=["kill-leader"]), audit(), closing())
    line = result_lines(verdict.to_json(), repro="x")[0]
    assert line == "RESULT unknown acked=24 read=24 anomalies=none allowed=none"
    failed = decide(a_run(), replace(audit(), failures={"duplicate": "it raised"}), closing())
    assert result_lines(failed.to_json(), repro="x")[0].endswith("anomalies=? allowed=?")


def test_the_object_has_the_keys_of_the_contract() -> None:
    """Every field that docs/verifier.md and CI read is in ``verdict.json``."""
    verdict = decide(a_run(), audit(found("lost-write")), closing()).to_json()
    assert list(verdict) == [
        "schema",
        "verdict",
        "valid",
        "reasons",
        "doubts",
        "narrowed",
        "checks",
        "stats",
        "availability",
    ]
    assert (verdict["schema"], verdict["verdict"], verdict["valid"]) == (1, "invalid", False)
    check = verdict["checks"]["lost-write"]
    assert {"valid", "allowed", "count", "examples"} <= set(check)
    assert {"stream", "sequence", "offset", "text", "context"} <= set(check["examples"][0])
    assert verdict["availability"] == {
        "longest_gap_ms": 5.0, "partitions": {"t-0": {"longest_gap_ms": 5.0, "start_ns": 10, "end_ns": 5_000_010}},
    }  # fmt: skip


STRICT = run_settings()
EARLY = {
    ("lost-write", None, ELECTION),
    ("log-gap", "sequences", ELECTION),
    ("inconsistent-offsets", "acknowledged", ELECTION),
}
UNHEARD = {("lost-write", None, DISCONNECT), ("log-gap", "sequences", DISCONNECT)}
REPEATED = {("duplicate", None, RETRY), ("log-duplicate", None, RETRY)}
REORDERED = {("nonmonotonic-send", None, RETRY), ("log-reorder", "values", RETRY)}
LATE = {("nonmonotonic-send", None, UNANSWERED), ("log-reorder", "values", UNANSWERED)}
BACK = {("nonmonotonic-send", None, RETURNED), ("log-reorder", "values", RETURNED)}
FORGOTTEN = {("sequence-duplicate", None, RETRY), ("sequence-gap", None, RETRY)}
UNCLEAN = {
    ("lost-write", None, ELECTION),
    ("log-gap", "sequences", ELECTION),
    ("inconsistent-offsets", None, ELECTION),
    ("duplicate", "vanished", ELECTION),
    ("poll-skip", None, ELECTION),
    ("int-poll-skip", None, ELECTION),
    ("nonmonotonic-poll", None, ELECTION),
    ("int-nonmonotonic-poll", None, ELECTION),
    ("watermark-regression", None, ELECTION),
    ("read-above-watermark", None, ELECTION),
}


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        (STRICT, set()),
        (run_settings(acks="1"), EARLY),
        (run_settings(acks="0"), EARLY | UNHEARD),
        (run_settings(idempotence=False, max_in_flight=1, client="native"), REPEATED | LATE),
        # librdkafka changes the order of refused batches even then.
        (run_settings(idempotence=False, max_in_flight=1, client="confluent"), REPEATED | REORDERED | LATE | BACK),
        (run_settings(idempotence=False), REPEATED | REORDERED | LATE | BACK),
        (run_settings(idempotence=False, retries=0, client="native"), LATE | BACK),
        # librdkafka does not count every time it sends a batch again as a retry.
        (run_settings(idempotence=False, retries=0, client="confluent"), REPEATED | REORDERED | LATE | BACK),
        (run_settings(unknown_producer="kafka"), REPEATED | REORDERED | FORGOTTEN),
        (run_settings(unknown_producer="kafka", retries=0), set()),
        (run_settings(unclean_leader_election=True), UNCLEAN),
    ],
)
def test_the_expectation_matrix(settings: RunSettings, allowed: set[tuple[str, str | None, str]]) -> None:
    """Which anomalies which settings permit, by which event; beside it what librdkafka itself sends again.

    It does so after a timeout, and after a refusal that only idempotence brings.
    """
    expectation = Expectation(settings)
    matrix = {(each.check, each.cause, each.excuse) for each in expectation.allowances}
    resent = {
        (check, "client-resend-after-error", event)
        for check in ("duplicate", "log-duplicate")
        for event in (TIMEOUT, *([REFUSAL] if settings.idempotence else []))
    }
    assert matrix == (allowed | resent if settings.client == "confluent" and settings.retries else allowed)
    for check, cause, excuse in matrix:
        assert check in NAMES
        assert cause is None or cause in BY_NAME[check].causes
        assert expectation.reason(check, cause, excuse) and expectation.permitted(check, cause)
        assert expectation.can_allow(check)
        assert expectation.reason(check, cause, None) is None


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_no_acks_setting_excuses_a_reader(acks: str) -> None:
    """What was committed is handed out and never taken back, however it was acknowledged."""
    expectation = Expectation(run_settings(acks=acks))
    for excuse in EXCUSES:
        assert expectation.reason("unseen", None, excuse) is None
        assert expectation.reason("inconsistent-offsets", "read", excuse) is None
        assert expectation.reason("log-corrupt", "batch", excuse) is None
