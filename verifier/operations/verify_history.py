"""Judges a file of operations. Owns the order of steps and the rules of the verdict.

Does not own the form of the verdict (``verifier.verdict``) or the checks (``verifier.operations.checks``). As for runs,
invalid outranks unknown, and unknown outranks valid. A malformed history is not judged, because the checks rely on the
rules that it breaks. A history in which nothing was acknowledged, or nothing was read, cannot be valid.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verifier.facts import Found
from verifier.operations import cycles
from verifier.operations.anomalies import BY_NAME, NAMES, group
from verifier.operations.checks import CHECKS
from verifier.operations.exported import FORGOTTEN, UNSENT, asides, is_sentinel
from verifier.operations.findings import Findings
from verifier.operations.model import FAIL, INFO, OK, IntArray, OperationHistory, OperationsError
from verifier.operations.options import JudgeOptions, allowances
from verifier.operations.pairing import Operations, pair
from verifier.operations.reading import read_operations
from verifier.operations.versions import Versions, versions
from verifier.operations.words import Narrator
from verifier.verdict import CheckResult, Example, State, Verdict, accusations, worst

logger = logging.getLogger(__name__)

MOST_EXAMPLES = 8
#: The limits of every verdict that rests on clients alone.
CANNOT_SEE = (
    "a client-only verdict cannot see what the brokers stored: logs, replicas that differ, damaged bytes, checkpoints",
    "a client-only verdict cannot tell a value lost at the end of a log from one that was not read yet (unseen)",
    "a client-only verdict cannot tell whether faults were injected, and whether they bit",
    "a client-only verdict cannot excuse anything: what acks=0, acks=1 or an unclean election makes legal is invalid",
)


@dataclass(frozen=True, slots=True)
class OperationExample(Example):
    """An example whose text was made in advance, by ``Narrator``."""

    words: str = ""

    @property
    def text(self) -> str:
        return self.words


@dataclass(frozen=True)
class ClientVerdict:
    """The verdict of one history.

    ``cannot_see`` has the limits of such a verdict, and ``beside`` the numbers that an exported run counts differently.
    They do not make the verdict unknown. If the history was not judged, they and ``findings`` are empty, and
    ``operations`` is None.
    """

    path: Path
    options: JudgeOptions
    verdict: Verdict
    cannot_see: tuple[str, ...] = CANNOT_SEE
    beside: tuple[str, ...] = ()
    findings: Mapping[str, Findings] = field(default_factory=dict)
    operations: Operations | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """All remarks about the verdict."""
        return (*self.cannot_see, *self.beside)

    def to_json(self) -> dict[str, Any]:
        """``verdict.json`` of a history: the form of a run's, plus ``kind``, ``options`` and ``notes``."""
        return {
            **self.verdict.to_json(),
            "kind": "operations",
            "options": self.options.to_json(),
            "notes": list(self.notes),
        }


def judge_file(path: Path, options: JudgeOptions) -> ClientVerdict:
    """Judges the history in a file. A malformed one makes the verdict ``unknown``. Raises ``OSError``."""
    try:
        history = read_operations(path)
        return judge(history, options, path)
    except OperationsError as error:
        return _unknown(path, options, f"the history cannot be read: {error}")
    except MemoryError:
        return _unknown(path, options, "the verifier ran out of memory")


def judge(history: OperationHistory, options: JudgeOptions, path: Path) -> ClientVerdict:
    """Judges a history. ``path`` is only for the report."""
    operations = pair(history)
    if operations.problems:
        return _unknown(path, options, *(f"the history is malformed: {each}" for each in operations.problems))
    if not len(operations):
        return _unknown(
            path, options, "the history is empty: it has no operation of a client, and there is nothing to judge"
        )
    order = versions(operations, transactions=options.transactions)
    found: dict[str, Findings] = {}
    failures: dict[str, str] = {}
    for covered, ask in _questions(operations, order, options):
        try:
            found |= {each.check: each for each in ask()}
        except Exception as error:  # other checks must still run; the verdict names those that failed
            logger.exception("checks %s failed", ", ".join(covered))
            failures |= dict.fromkeys(covered, f"{type(error).__name__}: {error}")
    stats = _stats(operations, order)
    doubts = _doubts(stats)
    if not stats["read"]:
        # if nothing was read at all, an unread value proves nothing
        found.pop("unseen", None)
    checks = _results(operations, order, found, failures, allowances(options, history), complete=not doubts)
    states: list[State] = [check.state for check in checks.values()]
    if doubts:
        states.append("unknown")
    doubts += [f"check {name} could not be made: {failure}" for name, failure in failures.items()]
    accused = tuple(accusations(checks, {name: BY_NAME[name].summary for name in NAMES}))
    availability: dict[str, Any] = {"longest_gap_ms": None, "partitions": {}}
    verdict = Verdict(worst(states), accused, tuple(doubts), checks, stats, availability)
    beside = tuple(f"{name}={stats[name]}: {aside}" for name, aside in asides(stats).items())
    return ClientVerdict(path, options, verdict, beside=beside, findings=found, operations=operations)


def _questions(operations: Operations, order: Versions, options: JudgeOptions) -> list[tuple[tuple[str, ...], Any]]:
    """The functions to call, each with the names of the checks that it covers. If one raises, only its checks fail."""
    asked: list[tuple[tuple[str, ...], Any]] = [
        (_COVERED[name], lambda ask=ask: ask(operations, order)) for name, ask in CHECKS.items()
    ]

    def circles() -> list[Findings]:
        return cycles.find(operations, order, ww_deps=options.ww_deps, transactions=options.transactions)

    return [*asked, (tuple(cycles.CLASSES), circles)]


_COVERED: Mapping[str, tuple[str, ...]] = {
    "log": ("inconsistent-offsets", "duplicate"),
    "values": ("phantom", "G1a", "precommitted-read", "lost-write", "unseen"),
    "polls": ("poll-skip", "nonmonotonic-poll"),
    "polls within an operation": ("int-poll-skip", "int-nonmonotonic-poll"),
    "sends": ("nonmonotonic-send",),
    "sends within an operation": ("int-send-skip", "int-nonmonotonic-send"),
}


def _unknown(path: Path, options: JudgeOptions, *reasons: str) -> ClientVerdict:
    checks = {name: CheckResult(name, "unknown") for name in NAMES}
    return ClientVerdict(path, options, Verdict("unknown", (), reasons, checks), cannot_see=())


def _doubts(stats: Mapping[str, Any]) -> list[str]:
    doubts = []
    if not stats["acked"]:
        doubts.append("nothing was acknowledged: no send is ok")
    if not stats["read"]:
        doubts.append("nothing was read: no poll that is ok returned a value")
    return doubts


def _results(
    operations: Operations,
    order: Versions,
    found: Mapping[str, Findings],
    failures: Mapping[str, str],
    allowed: Mapping[str, str],
    *,
    complete: bool,
) -> dict[str, CheckResult]:
    narrator = Narrator(operations, order)
    keys = {name: frozenset(each.key.tolist()) for name, each in found.items()}
    explained = group({name: each - {-1} for name, each in keys.items()})
    results = {}
    for name in NAMES:
        count = len(found[name]) if name in found else 0
        reason = allowed.get(name)
        examples = _examples(narrator, found[name], reason) if count else ()
        state: State = "invalid" if count and reason is None else "valid"
        if name in failures or (state == "valid" and not complete):
            state = "unknown"
        let_off = count if reason is not None else 0
        results[name] = CheckResult(name, state, count, let_off, examples, explained.get(name), failures.get(name))
    return results


def _examples(narrator: Narrator, found: Findings, allowed: str | None) -> tuple[Example, ...]:
    """Up to ``MOST_EXAMPLES`` examples: the shortest cycles, the longest skips, or else the first findings."""
    rows = range(len(found))
    if found.cycles:
        rows = sorted(rows, key=lambda row: len(found.cycles[row].steps))  # type: ignore[assignment]
    elif found.check.endswith("-skip"):
        rows = np.argsort(-found.delta, kind="stable").tolist()
    examples = []
    for place, row in enumerate(rows[:MOST_EXAMPLES]):
        detail = narrator.detail(found, row)
        offset = int(found.offset[row])
        # the first example has the count of all anomalies, as in a run
        each = Found(
            found.check, None, str(detail.get("key", "")), -1, len(found) if not place else 0,
            len(found) if not place else 0, None, None, None if offset < 0 else offset, 1, detail,
        )  # fmt: skip
        examples.append(OperationExample(each, allowed, narrator.sentence(found, row)))
    return tuple(examples)


def _stats(operations: Operations, order: Versions) -> dict[str, Any]:
    kind = operations.type[operations.sent_by]
    acked = operations.sent[kind == OK]
    history = operations.history
    info = operations.row[(operations.type == INFO) & (operations.end < len(history))]
    causes, refusals = _errors(history, info), _errors(history, operations.row[operations.type == FAIL])
    return {
        "acked": len(acked),
        "read": int(order.ok_read.sum()),
        "acked_and_read": int(order.ok_read[acked].sum()),
        "unknown": int((kind == INFO).sum()),
        "failed": int((kind == FAIL).sum()),
        "deliveries": int((operations.type[operations.read_by] == OK).sum()),
        "operations": len(operations),
        "processes": len(np.unique(operations.process)),
        "keys": len(operations.keys),
        "lines_skipped": history.skipped,
        "info_causes": causes,
        "sentinels": sum(map(is_sentinel, history.names.names(operations.values[acked]))),
        "never_sent": refusals.get(UNSENT, 0),
        "forgotten": causes.get(FORGOTTEN, 0),
    }


def _errors(history: OperationHistory, rows: IntArray) -> dict[str, int]:
    """Error -> how many of these lines have it."""
    errors, counts = np.unique(history.error[rows], return_counts=True)
    return {str(history.names.name(int(code))): int(n) for code, n in zip(errors, counts, strict=True) if code}
