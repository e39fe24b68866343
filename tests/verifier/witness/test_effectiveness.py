"""The record of faults: injections joined by their numbers, each with one end; and whether they bit."""

from __future__ import annotations

from typing import Any

import pytest

from verifier.witness.effectiveness import Injected, fault_record, ineffective


def entry(number: int, fault: str, phase: str, effective: bool = True, **changes: Any) -> dict[str, Any]:
    return {
        "number": number, "fault": fault, "target": "b1", "phase": phase, "start_ns": 10 + number, "end_ns": 20,
        "effective": effective, "probe": {phase: 1}, **({"healed": True} if phase == "heal" else {}), **changes,
    }  # fmt: skip


def injected(*entries: dict[str, Any]) -> tuple[Injected, ...]:
    """The injections of a record that is in order."""
    record = fault_record(entries, 1 + max((each["number"] for each in entries), default=-1))
    assert record.complaints == ()
    return record.injected


def test_the_heal_says_whether_a_fault_bit_and_both_probes_are_kept() -> None:
    """A dropped response shows only afterwards; neither probe overwrites the other."""
    (one,) = injected(
        entry(0, "drop-response", "inject", False, probe={"retries": 0}),
        entry(0, "drop-response", "heal", True, start_ns=50, end_ns=90, probe={"retries": 3}),
    )
    assert (one.effective, one.start_ns, one.healed_ns, one.end_ns, one.healed) == (True, 10, 50, 90, True)
    assert (one.probe, one.heal_probe) == ({"retries": 0}, {"retries": 3})


def test_a_fault_that_passed_late_was_over_in_the_end() -> None:
    """Its second probe gave up; when all was healed it looked again, and saw nothing of it any more."""
    slow = [entry(0, "kill-leader", "inject"), entry(0, "kill-leader", "heal", healed=False, end_ns=90)]
    (left,) = injected(*slow)
    assert (left.healed, left.late, left.effect) == (False, False, "bit, not seen to be over")
    (still,) = injected(*slow, entry(0, "kill-leader", "over", healed=False, end_ns=120))
    assert (still.late, still.effect) == (False, "bit, not seen to be over")
    (late,) = injected(*slow, entry(0, "kill-leader", "over", healed=True, end_ns=120))
    assert (late.healed, late.late, late.end_ns, late.again_ns) == (False, True, 90, 120)
    assert late.effect == "bit, seen to be over only when all was healed"


def test_injections_of_one_kind_and_target_are_told_apart_by_their_numbers() -> None:
    """The second of two that overlap does not heal the first."""
    entries = [
        entry(0, "cut-link", "inject"), entry(1, "kill-leader", "inject"), entry(2, "cut-link", "inject"),
        entry(2, "cut-link", "heal", False), entry(1, "kill-leader", "heal"), entry(0, "cut-link", "heal"),
    ]  # fmt: skip
    assert [(each.number, each.fault, each.effective) for each in injected(*entries)] == [
        (0, "cut-link", True), (1, "kill-leader", True), (2, "cut-link", False),
    ]  # fmt: skip


def test_what_there_was_no_time_for_is_accounted_for_and_is_no_injection() -> None:
    """A planned fault that was left out does not count as one that did not bite."""
    assert injected(entry(0, "a", "inject"), entry(0, "a", "heal"), entry(1, "a", "left-out", False)) == injected(
        entry(0, "a", "inject"), entry(0, "a", "heal")
    )


@pytest.mark.parametrize(
    ("entries", "planned", "complaint"),
    [
        ([entry(0, "a", "inject")], 1, "injection 0 (a) has inject and no proper end"),
        ([entry(0, "a", "heal")], 1, "injection 0 (a) has heal and no proper end"),
        ([entry(0, "a", "inject"), entry(0, "a", "skip")], 1, "has inject and skip"),
        ([entry(0, "a", "inject"), entry(0, "a", "inject"), entry(0, "a", "heal")], 1, "'inject' of injection 0 twice"),
        ([entry(0, "a", "inject"), entry(0, "a", "heal"), entry(0, "a", "heal")], 1, "'heal' of injection 0 twice"),
        ([entry(0, "a", "inject"), entry(0, "b", "heal")], 1, "began and ended as different faults"),
        ([entry(3, "a", "skip")], 1, "has an injection 3; 1 were planned"),
        ([entry(0, "a", "skip")], 2, "1 of 2 planned injections left no record: number 1"),
        ([entry(0, "a", "began")], 1, "or it is no phase"),
        ([entry(0, "a", "inject"), entry(0, "a", "over")], 1, "has inject and over"),
        ([{"fault": "a", "phase": "skip"}], 0, "has an injection -1"),
    ],
)  # fmt: skip
def test_a_record_that_contradicts_itself_is_not_believed(
    entries: list[dict[str, Any]], planned: int, complaint: str
) -> None:
    """Every planned injection has one end, and every entry belongs to one."""
    assert any(complaint in each for each in fault_record(entries, planned).complaints)


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
    for number, (fault, effective) in enumerate(bit):
        entries += [entry(number, fault, "inject", effective), entry(number, fault, "heal", effective)]
    assert ineffective(requested, injected(*entries)) == reasons


def test_a_skipped_fault_did_not_bite() -> None:
    """Its precondition never came; it counts as an injection all the same."""
    happened = injected(entry(0, "a", "skip", False), entry(1, "a", "inject"), entry(1, "a", "heal"))
    assert [each.skipped for each in happened] == [True, False]
    assert ineffective(["a"], happened) == []
    assert ineffective(["a"], happened[:1]) == [
        "ineffective: a never bit", "ineffective: 0 of 1 injected faults bit",
    ]  # fmt: skip
