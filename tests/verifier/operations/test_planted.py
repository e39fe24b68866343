"""Every anomaly, its nearest legal neighbor, what is allowed when, and what cannot be judged at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.long_operations import plan, write_operations
from tests.verifier.operations.histories import Line, counts, history_of, numbered, op
from tests.verifier.operations.planted import PAIRS, history, poll, send, together
from verifier.operations import cycles
from verifier.operations.anomalies import ANOMALIES, NAMES
from verifier.operations.options import JudgeOptions, parse_methods
from verifier.operations.verify_history import ClientVerdict, judge, judge_file
from verifier.operations.words import MOST_STEPS


def judged(lines: list[Line], options: JudgeOptions | None = None) -> ClientVerdict:
    return judge(history_of(lines), options or JudgeOptions(), Path("history.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_anomaly_is_found(name: str) -> None:
    """What is planted is found as often as it was planted, with words that name an operation or a value."""
    pair = PAIRS[name]
    found = judged(pair.wrong, pair.options)
    assert counts(found)[name] == pair.count
    assert set(counts(found)) == {name, *pair.besides}
    check = found.verdict.checks[name]
    assert check.examples[0].text
    assert check.failure is None
    assert found.verdict.verdict == ("invalid" if check.forbidden_count or pair.besides else "valid")


@pytest.mark.parametrize("name", NAMES)
def test_its_nearest_legal_neighbor_is_valid(name: str) -> None:
    """What differs by one thing and is right is not reported."""
    pair = PAIRS[name]
    found = judged(pair.legal, pair.options)
    assert counts(found) == {}
    assert found.verdict.verdict == "valid"


def test_every_anomaly_has_a_pair() -> None:
    """Definitions, summaries and pairs are complete, and what an anomaly brings about exists."""
    assert set(PAIRS) == set(NAMES)
    assert all(each.definition and each.example for each in ANOMALIES)
    assert {name for each in ANOMALIES for name in each.brings} <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "options", "allowed"),
    [
        ("poll-skip", JudgeOptions(), False),
        ("poll-skip", JudgeOptions(sub_via=frozenset({"subscribe"})), True),
        ("poll-skip", JudgeOptions(sub_via=frozenset({"assign", "subscribe"})), True),
        ("nonmonotonic-poll", JudgeOptions(sub_via=frozenset({"assign"})), False),
        ("nonmonotonic-poll", JudgeOptions(sub_via=frozenset({"subscribe"})), True),
        ("int-poll-skip", JudgeOptions(sub_via=frozenset({"subscribe"})), False),
        ("int-send-skip", JudgeOptions(), True),
        ("G0", JudgeOptions(ww_deps=True), True),
        ("G1c", JudgeOptions(), False),
        ("G1c", JudgeOptions(ww_deps=True), True),
        ("G1c-process", JudgeOptions(), False),
        ("G1c-process", JudgeOptions(ww_deps=True), True),
        ("precommitted-read", JudgeOptions(), False),
        ("precommitted-read", JudgeOptions(transactions=False), True),
        ("duplicate", JudgeOptions(sub_via=frozenset({"subscribe"}), ww_deps=True), False),
    ],
)  # fmt: skip
def test_what_the_options_allow(name: str, options: JudgeOptions, allowed: bool) -> None:
    """What is allowed is shown as allowed, with the reason; everything else makes the history invalid."""
    found = judged(PAIRS[name].wrong, options)
    check = found.verdict.checks[name]
    assert check.count == PAIRS[name].count
    assert (check.allowed_count, check.state) == ((check.count, "valid") if allowed else (0, "invalid"))
    assert [bool(example.allowed) for example in check.examples] == [allowed] * len(check.examples)
    assert found.verdict.verdict == ("valid" if allowed else "invalid")


def test_how_consumers_subscribed_is_taken_from_the_history() -> None:
    """Without --sub-via, an operation that subscribes allows what a rebalance does; --sub-via assign does not."""
    lines = history(
        op(0, "send", [send(1, 0, 7)]), op(1, "subscribe", [1]), op(1, "poll", [poll(k1=[(0, 7)])]),
        op(1, "poll", [poll(k1=[(0, 7)])]),
    )  # fmt: skip
    assert judged(lines).verdict.verdict == "valid"
    assert judged(lines, JudgeOptions(sub_via=parse_methods("assign"))).verdict.verdict == "invalid"
    with pytest.raises(ValueError, match="--sub-via takes assign, subscribe"):
        parse_methods("assign,group")


def test_a_transaction_is_all_or_nothing() -> None:
    """One value of an info transaction was read: the other must be there too, unless there are no transactions."""
    lines = history(
        op(0, "send", [send(1, 0, 7), send(2, 0, 8)], "info"), op(1, "poll", [poll(k1=[(0, 7)])]),
        op(2, "send", [send(2, 1, 9)]), op(1, "poll", [poll(k2=[(1, 9)])]),
    )  # fmt: skip
    assert counts(judged(lines)) == {"lost-write": 1}
    assert counts(judged(lines, JudgeOptions(transactions=False))) == {}


def test_operations_that_are_no_transactions_have_no_circles() -> None:
    """With --no-txn what an operation sends and polls happens one by one; reads before sends are wrong all the same."""
    no_txn = JudgeOptions(transactions=False)
    assert counts(judged(PAIRS["G1c"].wrong, no_txn)) == {}
    assert counts(judged(PAIRS["G1c-process"].wrong, no_txn)) == {"G1c-process": 1}


def test_huge_offsets_cost_nothing() -> None:
    """Offsets may be sparse and near the end of 64 bits: positions are counted, not offsets."""
    far = 2**63 - 2
    lines = history(
        op(0, "send", [send(1, 0, 7), send(1, far, 8)]), op(1, "poll", [poll(k1=[(0, 7), (far, 8)])])
    )  # fmt: skip
    assert counts(judged(lines)) == {}


BASE = [*op(0, "send", [send(1, 0, 7)]), *op(1, "poll", [poll(k1=[(0, 7)])])]
MALFORMED: dict[str, tuple[list[Line], str]] = {
    "two completions": ([*BASE, BASE[1]], "completes (ok) what it has not invoked"),
    "no invocation": ([*BASE[1:]], "completes (ok) what it has not invoked"),
    "two invocations": ([*BASE, BASE[0] | {"value": [["send", 1, 9]]}, BASE[2] | {"process": 0}], "while its last one"),
    "a value twice": ([*BASE, *op(2, "send", [send(1, 1, 7)])], "values must be unique"),
    "a value twice in one operation": ([*BASE, *op(2, "send", [send(2, 1, 7), send(2, 2, 7)])], "must be unique"),
    "another send": ([*BASE, op(2, "send", [send(1, 1, 8)])[0], op(2, "send", [send(1, 1, 9)])[1]], "did not invoke"),
    "a silent ok": ([*BASE, op(2, "send", [send(1, 1, 8)])[0], op(2, "send", [])[1]], "does not mention a send"),
    "another function": ([*BASE, BASE[0] | {"process": 5, "value": [["send", 1, 9]]}, BASE[3] | {"process": 5}],
                         "which is not what it invoked"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_history_is_unknown(name: str) -> None:
    """It is not judged, and the reason names what is wrong: never valid, never invalid."""
    lines, reason = MALFORMED[name]
    found = judged(numbered(lines))
    assert found.verdict.verdict == "unknown"
    assert any(reason in each for each in found.verdict.reasons), found.verdict.reasons
    assert {check.state for check in found.verdict.checks.values()} == {"unknown"}


def test_indices_that_go_back_are_unknown() -> None:
    """Lines in another order than their indices are no history."""
    lines = numbered(BASE)
    lines[2]["index"] = 0
    assert judged(lines).verdict.reasons == ("the history is malformed: line 3: index 0 goes back",)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "the history is empty"),
        (op(1, "poll", [poll()]), "nothing was acknowledged"),
        (op(0, "send", [send(1, 0, 7)], "info"), "nothing was acknowledged"),
        (op(0, "send", [send(1, 0, 7)]), "nothing was read"),
    ],
)
def test_without_evidence_nothing_is_valid(lines: list[Line], reason: str) -> None:
    """Nothing acknowledged or nothing read is unknown; what is wrong all the same is invalid."""
    verdict = judged(numbered(lines)).verdict
    assert verdict.verdict == "unknown"
    assert any(reason in each for each in verdict.reasons)
    assert {check.state for check in verdict.checks.values()} == {"unknown"}
    wrong = judged(numbered([*lines, *op(8, "poll", [poll(k3=[(0, 7)])])])).verdict
    assert (wrong.verdict, wrong.checks["phantom"].count) == ("invalid", 1)


def test_what_never_completed_is_unknown_to_the_client() -> None:
    """An invocation without completion may have happened: no phantom if it was read, no loss if it was not."""
    lines = history(op(0, "send", [send(1, 0, 7)], "open"), op(2, "send", [send(1, 1, 8)], "open"),
                    op(1, "poll", [poll(k1=[(0, 7)])]))  # fmt: skip
    found = judged(lines)
    assert counts(found) == {}
    assert found.verdict.stats["unknown"] == 2


def test_the_verdict_has_the_form_of_a_run_s() -> None:
    """The keys of verdict.json, and notes that say what such a history cannot show without doubting anything."""
    told: dict[str, Any] = judged(history()).to_json()
    assert {"schema", "verdict", "valid", "reasons", "checks", "stats", "availability"} <= set(told)
    assert (told["valid"], told["reasons"], told["kind"]) == (True, [], "operations")
    assert all("a client-only verdict cannot" in note for note in told["notes"])
    assert set(told["checks"]) == set(NAMES)


@pytest.mark.parametrize("size", [2, 3, 5, MOST_STEPS + 3])
def test_the_shortest_circle_is_shown(size: int) -> None:
    """Of one component the shortest cycle is shown, edge by edge, in words that name operations and values."""
    ring = [
        op(at, "txn", [send(1 + at, 0, 7), poll(**{f"k{1 + (at + 1) % size}": [(0, 7)]})]) for at in range(size)
    ]  # fmt: skip
    found = judged(history(together(*ring)))
    (example,) = found.verdict.checks["G1c"].examples
    cycle = example.found.detail["cycle"]
    assert (cycle["length"], cycle["component"], cycle["is_shortest"]) == (size, size, True)
    steps = cycle["steps"]
    assert [step["to"]["index"] for step in steps] == [step["from"]["index"] for step in [*steps[1:], steps[0]]]
    assert {step["edge"] for step in steps} == {"wr"}
    assert f"a cycle of {size} of {size} connected operations" in example.text
    assert "sent 7 to key" in example.text


def test_planted_circles_in_a_long_history(tmp_path: Path) -> None:
    """A small version of ``python -m bench cycles``: every circle, and the chain through thousands, is found."""
    planned = plan(20_000, count=12, chain=1_000)
    path = tmp_path / "history.edn"
    write_operations(path, planned)
    found = judge_file(path, JudgeOptions())
    assert found.verdict.doubts == ()
    assert set(counts(found)) == {"G1c"}
    circles = found.findings["G1c"].cycles
    assert sorted(len(cycle.steps) for cycle in circles if cycle.size < 10) == sorted(planned.lengths)
    assert [cycle.size >= planned.chain for cycle in circles if cycle.size >= 10] == [True]
    assert all(cycle.is_shortest for cycle in circles)
    with_writes = judge_file(path, JudgeOptions(ww_deps=True))
    assert with_writes.verdict.verdict == "valid"
    assert with_writes.verdict.checks["G1c"].allowed_count >= 1
    assert all(with_writes.verdict.checks[name].failure is None for name in cycles.CLASSES)
