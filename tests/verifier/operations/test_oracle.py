"""Every check of operation histories beside its slow twin, on simulated histories as mutations leave them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verifier.operations import oracle
from tests.verifier.operations.histories import history_of, mutated
from verifier.operations import cycles
from verifier.operations.anomalies import NAMES
from verifier.operations.checks import CHECKS
from verifier.operations.findings import Findings
from verifier.operations.options import JudgeOptions
from verifier.operations.pairing import Operations, pair
from verifier.operations.verify_history import judge
from verifier.operations.versions import versions

CASES = 5000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 50


def found_by_checks(lines: list[dict[str, Any]], *, ww_deps: bool, transactions: bool) -> dict[str, Counter[Any]]:
    """What the checks find, in the form of the oracle."""
    operations = pair(history_of(lines))
    assert operations.problems == ()
    order = versions(operations, transactions=transactions)
    found = [each for find in CHECKS.values() for each in find(operations, order)]
    found += cycles.find(operations, order, ww_deps=ww_deps, transactions=transactions)
    return {each.check: told for each in found if (told := _told(operations, each))}


def _told(operations: Operations, found: Findings) -> Counter[Any]:
    if found.check in cycles.CLASSES:
        assert all(cycle.is_shortest for cycle in found.cycles)
        return Counter((len(cycle.steps),) for cycle in found.cycles)
    names = operations.history.names
    told: Counter[Any] = Counter()
    for row in range(len(found)):
        key = names.name(int(operations.keys[found.key[row]]))
        value = names.name(int(operations.values[found.value[row]]))
        other = names.name(int(operations.values[found.other[row]])) if found.other[row] >= 0 else None
        line = int(operations.row[found.operation[row]])
        match found.check:
            case "inconsistent-offsets":
                told[key, int(found.offset[row]), value] += 1
            case "duplicate":
                told[key, value, int(found.delta[row])] += 1
            case "phantom" | "unseen" | "lost-write":
                told[key, value] += 1
            case "G1a":
                told[key, value, line] += 1
            case "precommitted-read":
                told[key, line] += 1
            case _:
                told[key, other, value, line] += 1
    return told


@settings(max_examples=CASES, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 6), st.booleans(), st.booleans())
def test_the_checks_and_the_oracle_agree(seed: int, mutations: int, ww_deps: bool, transactions: bool) -> None:
    """Vectorized checks and plain loops find the same anomalies, and shortest cycles of the same lengths."""
    lines = mutated(seed, mutations)
    wanted = oracle.find_all(lines, ww_deps=ww_deps, transactions=transactions)
    assert found_by_checks(lines, ww_deps=ww_deps, transactions=transactions) == wanted


def test_every_check_is_put_to_use() -> None:
    """Among mutated histories every anomaly occurs, so agreement means something."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        seen.update(oracle.find_all(mutated(seed, seed % 7), ww_deps=True, transactions=True).keys())
    for seed in range(200):
        seen.update(oracle.find_all(mutated(seed, 4), ww_deps=False, transactions=True).keys())
    assert set(seen) == set(NAMES)


@settings(max_examples=CASES, deadline=None)
@given(st.integers(0, 2**32))
def test_a_correct_log_is_never_invalid(seed: int) -> None:
    """Without mutations only what is allowed, or late (unseen), is found."""
    lines = mutated(seed, 0)
    verdict = judge(history_of(lines), JudgeOptions(sub_via=frozenset({"assign"})), Path("test")).verdict
    assert {name for name, check in verdict.checks.items() if check.forbidden_count} <= {"unseen"}
