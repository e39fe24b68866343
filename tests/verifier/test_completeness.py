"""When evidence suffices, and when faults did: each rule alone takes ``valid`` away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.settings import settings as run_settings
from tests.verifier.test_verdict import a_run, facts
from verifier.completeness import incomplete
from verifier.effectiveness import ineffective, injections
from verifier.evidence.run_model import ChildProcess, HarnessHealth, RunModel, TopicSpec
from verifier.facts import Facts, HistoryState, ReaderReach


def final(**changes: Any) -> RunModel:
    """A run whose one partition ended otherwise."""
    run = a_run()
    return replace(run, final=[replace(run.final[0], **changes)])


def history(state: str, process: str = "producer-1", **changes: Any) -> Facts:
    """Evidence in which one history ended otherwise."""
    others = tuple(each for each in facts().histories if each.process != process)
    return facts(histories=(*others, HistoryState(process, f"{process}.arrow", state, **changes)))


def test_complete_evidence_has_no_gap() -> None:
    """The base of all cases below."""
    assert incomplete(a_run(), facts()) == []


READER = ReaderReach("run", "final-1", "t", 0, 1, 20, False)
COMPACTED = TopicSpec("t", 1, 3, config={"cleanup.policy": "compact,delete"})
LAGS = HarnessHealth(event_loop_lag_s={"proxy": 1.2, "broker-1": 9.0})

CASES: list[tuple[str, RunModel, Facts]] = [
    ("the run was interrupted", a_run(interrupted=True), facts()),
    ("the load did not stop", a_run(problems=["the load did not stop"]), facts()),
    ("run.json names no topic", a_run(topics=[]), facts()),
    ("t-0: its final state is unknown", a_run(final=[]), facts()),
    ("t is compacted (cleanup.policy=compact,delete)", a_run(topics=[COMPACTED]), facts()),
    ("t-0: unavailable: it has no leader", final(status="unavailable: it has no leader"), facts()),
    ("did not settle", final(log_end_offsets={1: 25, 2: 25, 3: 24}), facts()),
    ("did not settle", final(high_watermark=24, sentinel_offset=23), facts()),
    ("2 of its 3 replicas are known", final(log_end_offsets={1: 25, 2: 25}), facts()),
    ("it has no acknowledged sentinel", final(sentinel_offset=None), facts()),
    ("is not below the high watermark", final(sentinel_offset=25), facts()),
    ("there is no history", a_run(), facts(histories=())),
    (
        "the history of producer-1 is missing",
        a_run(),
        facts(histories=tuple(h for h in facts().histories if h.process != "producer-1")),
    ),
    ("cannot be read: no Arrow message", a_run(), history("damaged", error="no Arrow message")),
    ("has no proper end", a_run(), history("torn")),
    ("no segment was found on any broker", a_run(), facts(replicas=(), segments_listed=0)),
    ("t-0: no segment was found on broker 3", a_run(), facts(replicas=facts().replicas[:2], segments_listed=2)),
    ("4 segment files were found, 3 were read", a_run(), facts(segments_listed=4)),
    (
        "800 of 900 bytes on broker 1",
        a_run(),
        facts(replicas=(replace(facts().replicas[0], batch_bytes=800), *facts().replicas[1:])),
    ),
    ("t-0: its sentinel is not in the final leader's log", a_run(), facts(sentinels=frozenset())),
    ("t-0: no final reader reached its sentinel", a_run(), facts(readers=())),
    ("stopped at offset 20, before the sentinel", a_run(), facts(readers=(*facts().readers, READER))),
    ("nothing was acknowledged", a_run(), facts(acked=0)),
    ("nothing was read in the final phase", a_run(), facts(final_read=0)),
    ("2 history rows make no sense", a_run(), facts(malformed_rows=2)),
    (
        "harness overloaded: the event loop of proxy stood still for 1.20 s",
        a_run(harness=LAGS, settings=run_settings(session_timeout_ms=2000)),
        facts(),
    ),
]


@pytest.mark.parametrize(("reason", "run", "known"), CASES, ids=[case[0] for case in CASES])
def test_each_gap_in_the_evidence_is_named(reason: str, run: RunModel, known: Facts) -> None:
    """One thing is missing, and one reason says so."""
    reasons = incomplete(run, known)
    assert any(reason in each for each in reasons), reasons
    assert len(reasons) <= 2, reasons


def test_the_torn_tail_of_a_killed_process_is_legal() -> None:
    """It is known to have been killed by a signal; what it had reserved is unknown, not a phantom."""
    killed = ChildProcess("producer-1", 7, 0.0, exit_code=-9)
    assert incomplete(a_run(children=[killed]), history("torn")) == []
    assert incomplete(a_run(children=[replace(killed, exit_code=0)]), history("torn")) != []


def test_a_loaded_broker_is_not_an_overloaded_harness() -> None:
    """The brokers' own lag is part of what is under test; so is a lag below half a session."""
    run = a_run(harness=LAGS, settings=run_settings(session_timeout_ms=3000))
    assert incomplete(run, facts()) == []


def test_the_same_reason_is_given_once_for_all_partitions() -> None:
    """A run that ended early has one line for what all partitions lack."""
    topic = replace(a_run().topics[0], partitions=3)
    assert incomplete(a_run(topics=[topic], final=[]), facts()) == ["t-0, t-1, t-2: its final state is unknown"]


def entry(fault: str, phase: str, effective: bool = True, **changes: Any) -> dict[str, Any]:
    return {
        "fault": fault, "target": "b1", "phase": phase, "start_ns": 10, "end_ns": 20, "effective": effective,
        "probe": {phase: 1}, **changes,
    }  # fmt: skip


def test_the_heal_says_whether_a_fault_bit() -> None:
    """A dropped response shows only afterwards; the probes of both ends are kept."""
    (one,) = injections([entry("drop-response", "inject", False), entry("drop-response", "heal", True, end_ns=90)])
    assert (one.effective, one.start_ns, one.end_ns) == (True, 10, 90)
    assert one.probe == {"inject": 1, "heal": 1}


def test_overlapping_faults_are_paired_by_kind_and_target() -> None:
    """The second of two that overlap does not heal the first."""
    entries = [
        entry("cut-link", "inject"), entry("kill-leader", "inject"), entry("cut-link", "inject", target="b2"),
        entry("cut-link", "heal", False, target="b2"), entry("kill-leader", "heal"), entry("cut-link", "heal"),
    ]  # fmt: skip
    assert [(each.fault, each.target, each.effective) for each in injections(entries)] == [
        ("cut-link", "b1", True), ("kill-leader", "b1", True), ("cut-link", "b2", False),
    ]  # fmt: skip


def test_a_fault_that_was_never_healed_counts_by_its_injection() -> None:
    """A run that was cut short has open ends."""
    (one,) = injections([entry("kill-leader", "inject", True)])
    assert (one.effective, one.end_ns) == (True, None)


@pytest.mark.parametrize(
    ("requested", "bit", "reasons"),
    [
        ([], [], []),
        (["a"], [("a", True)], []),
        (["a"], [("a", True), ("a", False)], []),
        (["a"], [("a", True), ("a", False), ("a", False)], ["ineffective: 1 of 3 injected faults bit"]),
        (["a", "b"], [("a", True)], ["ineffective: b never bit"]),
        (["a"], [], ["ineffective: a never bit"]),
        (
            ["a", "b", "c"],
            [("a", True), ("b", False), ("c", False)],
            ["ineffective: b, c never bit", "ineffective: 1 of 3 injected faults bit"],
        ),
    ],
)
def test_the_rule_of_effective_faults(requested: list[str], bit: list[tuple[str, bool]], reasons: list[str]) -> None:
    """Every kind that was asked for bit at least once, and at least half of all injections did."""
    entries = []
    for fault, effective in bit:
        entries += [entry(fault, "inject", effective), entry(fault, "heal", effective)]
    assert ineffective(requested, injections(entries)) == reasons


def test_a_skipped_fault_did_not_bite() -> None:
    """Its precondition never came; it counts as an injection all the same."""
    happened = injections([entry("a", "skip", False), entry("a", "inject"), entry("a", "heal")])
    assert [each.skipped for each in happened] == [True, False]
    assert ineffective(["a"], happened) == []
    assert ineffective(["a"], happened[:1]) == [
        "ineffective: a never bit", "ineffective: 0 of 1 injected faults bit",
    ]  # fmt: skip
