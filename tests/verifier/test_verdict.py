"""The verdict: the lattice, what is allowed, what explains what, and the lines and objects that tell it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from tests.support.stories import clean
from verifier.anomalies import ANOMALIES, BY_NAME, NAMES, group
from verifier.effectiveness import Injected
from verifier.evidence.run_model import RunModel, RunSettings
from verifier.expectation import Expectation
from verifier.facts import Audit, Facts, Found, Gap, HistoryState, ReaderReach, Region, ReplicaFiles
from verifier.verdict import decide, result_lines, undecidable, worst


def a_run(**changes: Any) -> RunModel:
    """A run of one partition on three brokers, settled and without faults."""
    return replace(clean().model(), **changes)


def facts(**changes: Any) -> Facts:
    """Complete evidence of ``a_run``."""
    final = a_run().final[0]
    return replace(
        Facts(
            acked=24, read=50, final_read=25,
            histories=tuple(HistoryState(name, f"{name}.arrow", "closed") for name in a_run().load_processes),
            readers=(ReaderReach("run", "final-1", "t", 0, 1, 24, True),),
            replicas=tuple(ReplicaFiles(b, "t", 0, 1, 900, 900, 9, 900, 25) for b in final.log_end_offsets),
            segments_listed=3,
            sentinels=frozenset({("t", 0)}),
        ),
        **changes,
    )  # fmt: skip


def found(check: str, cause: str | None = None, partition: int = 0, count: int = 1) -> Found:
    """An anomaly as a check reports it."""
    details = {
        "lost-write": {"reads": 0}, "duplicate": {"first_read": 1, "last_read": 2},
        "log-duplicate": {"first_log": 1, "last_log": 2}, "log-gap": {"last_sequence": 5},
        "nonmonotonic-send": {"after_sequence": 9, "after_offset": 3},
        "log-reorder": {"after_sequence": 9, "after_offset": 3},
    }  # fmt: skip
    return Found(check, cause, "t", partition, count, count, 1, 4, 7, 1, details.get(check, {}))


def audit(*anomalies: Found, **changes: Any) -> Audit:
    """An audit of complete evidence."""
    regions = (Region(True, True, True, 24),)
    whole = Audit(facts(), found=anomalies, gaps=(Gap("t", 0, 5_000_000, 10, 5_000_010),), regions=regions)
    return replace(whole, **changes)


def test_complete_evidence_and_nothing_found_is_valid() -> None:
    """The one way to valid."""
    verdict = decide(a_run(), [], audit())
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
    verdict = decide(a_run(interrupted=True), [], audit(found("lost-write")))
    assert verdict.verdict == "invalid"
    assert verdict.reasons[0].startswith("lost-write")
    assert "the run was interrupted" in verdict.reasons
    assert verdict.checks["unseen"].state == "unknown"


def test_faults_that_did_not_bite_make_unknown() -> None:
    """A run without effective faults is never valid, though its checks found nothing."""
    missed = Injected("kill-leader", "b1", 1, 2, effective=False, skipped=False, probe={})
    verdict = decide(a_run(faults_requested=["kill-leader"]), [missed], audit())
    assert verdict.verdict == "unknown"
    assert verdict.checks["lost-write"].state == "valid"
    assert verdict.reasons == (
        "ineffective: kill-leader never bit", "ineffective: 0 of 1 injected faults bit",
    )  # fmt: skip


def test_a_check_that_failed_is_unknown_and_says_why() -> None:
    """An exception in one check is not a finding, and not an acquittal."""
    verdict = decide(a_run(), [], audit(failures={"unseen": "out of memory"}))
    assert verdict.verdict == "unknown"
    assert verdict.checks["unseen"].to_json()["valid"] == "unknown"
    assert verdict.reasons == ("check unseen could not be made: out of memory",)


def test_what_the_settings_allow_is_shown_and_does_not_count() -> None:
    """Allowed anomalies leave the run valid and appear with their reason."""
    settings = RunSettings(idempotence=False)
    verdict = decide(a_run(settings=settings), [], audit(found("duplicate", "unidentified", count=3)))
    assert verdict.verdict == "valid"
    check = verdict.to_json()["checks"]["duplicate"]
    assert (check["valid"], check["allowed"], check["count"]) == (True, True, 3)
    assert "idempotence is off" in check["examples"][0]["allowed"]


def test_one_that_is_not_allowed_beside_one_that_is_counts() -> None:
    """The two are told apart by their cause, within one check."""
    anomalies = [found("duplicate", "client-resend-after-error", count=2), found("duplicate", "broker", 1, count=5)]
    verdict = decide(a_run(), [], audit(*anomalies))
    check = verdict.to_json()["checks"]["duplicate"]
    assert (check["valid"], check["allowed"], check["count"], check["allowed_count"]) == (False, False, 7, 2)
    assert check["examples"][0]["cause"] == "broker"


def test_consequences_are_grouped_under_their_cause() -> None:
    """The reasons lead with the cause and name what it explains."""
    anomalies = [found("lost-write", count=4), found("log-gap", "sequences"), found("inconsistent-offsets", "read")]
    verdict = decide(a_run(), [], audit(*anomalies))
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
    settings = RunSettings(acks="1")
    verdict = decide(a_run(settings=settings), [], audit(found("lost-write"), found("inconsistent-offsets", "read")))
    assert verdict.accusations == ("inconsistent-offsets: two parties disagree about what stands at an offset (1)",)


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
    """Design section 8: counts of what is not allowed, and of what is, by name."""
    anomalies = [found("lost-write", count=2), found("log-gap", "sequences"), found("duplicate", "client-resend", 1)]
    anomalies.append(found("log-duplicate", "client-resend-after-error", count=3))
    lines = result_lines(decide(a_run(), [], audit(*anomalies)).to_json(), seed=7, report="r.html", repro="gapless run")
    assert lines == [
        "RESULT invalid seed=7 acked=24 read=24 anomalies=lost-write:2,duplicate:1,log-gap:1 allowed=log-duplicate:3",
        "report: r.html",
        "repro: gapless run",
    ]
    clean_lines = result_lines(decide(a_run(), [], audit()).to_json(), seed=7, report="r", repro="x")
    assert clean_lines[0] == "RESULT valid seed=7 acked=24 read=24 anomalies=none allowed=none"
    assert result_lines(undecidable("x").to_json(), seed=1, report="r", repro="x")[0] == (
        "RESULT unknown seed=1 acked=0 read=0 anomalies=none allowed=none"
    )


def test_the_object_has_the_keys_of_the_contract() -> None:
    """``verdict.json`` as design section 8 has it."""
    verdict = decide(a_run(), [], audit(found("lost-write"))).to_json()
    assert list(verdict) == ["schema", "verdict", "valid", "reasons", "checks", "stats", "availability"]
    assert (verdict["schema"], verdict["verdict"], verdict["valid"]) == (1, "invalid", False)
    check = verdict["checks"]["lost-write"]
    assert {"valid", "allowed", "count", "examples"} <= set(check)
    assert {"stream", "sequence", "offset", "text", "context"} <= set(check["examples"][0])
    assert verdict["availability"] == {
        "longest_gap_ms": 5.0, "partitions": {"t-0": {"longest_gap_ms": 5.0, "start_ns": 10, "end_ns": 5_000_010}},
    }  # fmt: skip


STRICT = RunSettings()
EARLY = {("lost-write", None), ("log-gap", "sequences"), ("inconsistent-offsets", "acknowledged")}


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        (STRICT, set()),
        (
            RunSettings(acks="1"),
            {("lost-write", None), ("log-gap", "sequences"), ("inconsistent-offsets", "acknowledged")},
        ),
        (
            RunSettings(acks="0"),
            {("lost-write", None), ("log-gap", "sequences"), ("inconsistent-offsets", "acknowledged")},
        ),
        (
            RunSettings(idempotence=False, max_in_flight=1, client="native"),
            {("duplicate", None), ("log-duplicate", None)},
        ),
        # librdkafka changes the order of refused batches even then.
        (
            RunSettings(idempotence=False, max_in_flight=1, client="confluent"),
            {
                ("duplicate", None),
                ("log-duplicate", None),
                ("nonmonotonic-send", None),
                ("log-reorder", "values"),
            },
        ),
        (
            RunSettings(idempotence=False),
            {("duplicate", None), ("log-duplicate", None), ("nonmonotonic-send", None), ("log-reorder", "values")},
        ),
        (RunSettings(idempotence=False, retries=0), set()),
        (
            RunSettings(unknown_producer="kafka"),
            {
                ("duplicate", None),
                ("log-duplicate", None),
                ("nonmonotonic-send", None),
                ("log-reorder", "values"),
                ("sequence-duplicate", None),
                ("sequence-gap", None),
            },
        ),
        (
            RunSettings(unclean_leader_election=True),
            {
                ("lost-write", None),
                ("log-gap", "sequences"),
                ("inconsistent-offsets", None),
                ("duplicate", "vanished"),
                ("sequence-gap", None),
            },
        ),
    ],
)
def test_the_expectation_matrix(settings: RunSettings, allowed: set[tuple[str, str | None]]) -> None:
    """Which anomalies which settings allow; beside it only the client's own resend after a timeout."""
    matrix = {(each.check, each.cause) for each in Expectation(settings).allowances}
    always = {("duplicate", "client-resend-after-error"), ("log-duplicate", "client-resend-after-error")}
    assert matrix == allowed | always
    for check, cause in matrix:
        assert check in NAMES
        assert cause is None or cause in BY_NAME[check].causes
        assert Expectation(settings).reason(check, cause)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_no_acks_setting_excuses_a_reader(acks: str) -> None:
    """What was committed is handed out and never taken back, however it was acknowledged."""
    expectation = Expectation(RunSettings(acks=acks))
    assert expectation.reason("unseen", None) is None
    assert expectation.reason("inconsistent-offsets", "read") is None
    assert expectation.reason("log-corrupt", "batch") is None
