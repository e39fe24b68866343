"""The verdict: from facts to valid, invalid or unknown. Pure; owns the lattice and ``verdict.json``.

Within a run invalid outranks unknown, and unknown outranks valid: incomplete evidence never hides what was found, and
nothing found in incomplete evidence is never called valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from verifier import explain
from verifier.anomalies import BY_NAME, NAMES, group
from verifier.anomalies.model import Subject
from verifier.closing.closing import Closing
from verifier.completeness import incomplete
from verifier.completeness.load import uncountable
from verifier.deletions import have_begun
from verifier.doubts import DELETIONS, Doubt, Evidence, blinded
from verifier.evidence.run_model import RunModel
from verifier.excuses.expectation import Expectation
from verifier.facts import Audit, Found
from verifier.figures.stats import stats
from verifier.figures.unavailability import longest_gaps
from verifier.narrowed import Narrowing, narrowing
from verifier.witness.effectiveness import ineffective

SCHEMA = 1

#: Stands for a number that was not counted: nothing was judged, its evidence is missing, or a check was withheld.
UNCOUNTED = "?"

State = Literal["valid", "invalid", "unknown"]
_RANK: tuple[State, ...] = ("valid", "unknown", "invalid")
_VALID: Mapping[State, bool | str] = {"valid": True, "invalid": False, "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class Example:
    """Anomalies of one check, cause and excuse in one partition, with the first of them.

    ``allowed`` is None, or the reason: what the settings permit, and the event in the evidence that makes it legal.
    """

    found: Found
    allowed: str | None

    @property
    def text(self) -> str:
        return explain.sentence(self.found)

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers that do not apply are null."""
        found = self.found
        return {
            "topic": found.topic,
            "partition": found.partition,
            "cause": found.cause,
            "allowed": self.allowed,
            "excuse": found.excuse,
            "event": found.event,
            "count": found.count,
            "size": found.size,
            "stream": found.stream,
            "sequence": found.sequence,
            "offset": found.offset,
            "text": self.text,
            "detail": dict(found.detail),
            "context": dict(found.context),
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says. ``count`` is all it found, ``allowed_count`` how much of it the settings allow.

    ``explained_by`` names the anomaly whose consequence this is, ``failure`` why the check could not be made.
    ``withheld``: the evidence that it needs cannot be believed, so it says nothing, whatever it found. ``unasked``: why
    it was not asked in a run whose cluster others started; that makes no verdict unknown. ``idle``: what it is about,
    if the run does not have that: there was nothing to judge.
    """

    name: str
    state: State
    count: int = 0
    allowed_count: int = 0
    examples: tuple[Example, ...] = ()
    explained_by: str | None = None
    failure: str | None = None
    withheld: bool = False
    unasked: str | None = None
    idle: Subject | None = None

    @property
    def forbidden_count(self) -> int:
        return self.count - self.allowed_count

    @property
    def idle_text(self) -> str | None:
        """Why it had nothing to judge, in words; None if it had."""
        return None if self.idle is None else f"nothing to judge: the run has no {self.idle}"

    def to_json(self) -> dict[str, Any]:
        """The check's part of ``verdict.json``."""
        return {
            "valid": _VALID[self.state],
            "allowed": self.count > 0 and self.allowed_count == self.count,
            "count": self.count,
            "allowed_count": self.allowed_count,
            "explained_by": self.explained_by,
            "failure": self.failure,
            "withheld": self.withheld,
            "unasked": self.unasked,
            "idle": self.idle_text,
            "examples": [example.to_json() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgment of one run. ``verdict`` is ``valid``, ``invalid`` or ``unknown``.

    ``accusations`` say what was found, one line per anomaly that leads; ``doubts`` why it could not be called valid;
    ``narrowed`` what it says nothing about, since others started the cluster.
    """

    verdict: State
    accusations: tuple[str, ...]
    doubts: tuple[str, ...]
    checks: Mapping[str, CheckResult]
    stats: Mapping[str, Any] = field(default_factory=dict)
    availability: Mapping[str, Any] = field(default_factory=dict)
    narrowed: tuple[str, ...] = ()

    def leader(self, name: str) -> str | None:
        """The anomaly that counts and under which this one is grouped, if there is one."""
        return _leader(self.checks[name], self.checks)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Everything that speaks against the run, what was found first."""
        return (*self.accusations, *self.doubts)

    def doubted(self, reason: str) -> Verdict:
        """The same, with one more reason not to call it valid."""
        return replace(self, verdict=worst([self.verdict, "unknown"]), doubts=(*self.doubts, reason))

    def with_figures(
        self,
        *,
        recoveries: Mapping[str, Any],
        memory_mb: Mapping[str, Any],
        faults: Sequence[Mapping[str, Any]] = (),
        seal: str | None = None,
        **more: Mapping[str, Any] | None,
    ) -> Verdict:
        """The same verdict, with figures that decide nothing: how brokers recovered, the memory of the run's processes,
        how long each partition went without an acknowledgement during each fault, the seal's digest; and ``more``.
        """
        told = {"memory_mb": memory_mb, "seal": seal} | {name: each for name, each in more.items() if each}
        availability = {**self.availability, "recoveries": recoveries, "faults": list(faults)}
        return replace(self, availability=availability, stats={**self.stats, **told})

    def to_json(self) -> dict[str, Any]:
        """``verdict.json``."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "valid": _VALID[self.verdict],
            "reasons": list(self.reasons),
            "doubts": list(self.doubts),
            "narrowed": list(self.narrowed),
            "checks": {name: check.to_json() for name, check in self.checks.items()},
            "stats": dict(self.stats),
            "availability": dict(self.availability),
        }


def worst(states: Sequence[State]) -> State:
    """The one that outranks all others; no states are valid."""
    return max(states, key=_RANK.index, default="valid")


def decide(run: RunModel, audit: Audit, closing: Closing, further: Sequence[Doubt] = ()) -> Verdict:
    """Judge a run by its settings, its faults, what closes its evidence and what Spark found.

    ``further`` are doubts about evidence that ``closing`` does not have.
    """
    gaps_in_evidence = [*incomplete(run, audit.facts, closing), *further]
    injected = closing.faults.injected
    doubts = [doubt.reason for doubt in gaps_in_evidence] + ineffective(run.faults_requested, injected)
    blind = blinded(gaps_in_evidence)
    if not have_begun(run, closing.accounts):
        # with nothing deleted no journal is asked where a replica begins: damage to one must hide no divergence
        blind -= DELETIONS
    narrow = narrowing(run)
    found = _results(Expectation.of(run), audit, blind, complete=not gaps_in_evidence)
    checks = {name: _asked(each, narrow) for name, each in found.items()}
    states: list[State] = [check.state for check in checks.values() if check.unasked is None]
    if doubts:
        states.append("unknown")
    off = [check.name for check in checks.values() if check.withheld]
    if off:
        doubts.append(f"checks withheld because they need that evidence: {', '.join(off)}")
    failures = [f"check {check.name} could not be made: {check.failure}" for check in checks.values() if check.failure]
    return Verdict(
        verdict=worst(states),
        accusations=tuple(accusations(checks, {name: BY_NAME[name].summary for name in NAMES})),
        doubts=(*doubts, *failures),
        checks=checks,
        stats=stats(injected, audit, uncountable(run, closing)),
        availability=longest_gaps(run, audit.gaps),
        narrowed=narrow.lines,
    )


def _asked(check: CheckResult, narrow: Narrowing) -> CheckResult:
    """The same check, or why it was not asked. What one found nevertheless counts: no evidence is ever passed over."""
    why = narrow.unasked.get(check.name)
    if why is None or check.forbidden_count or check.failure or check.withheld:
        return check
    return replace(check, state="unknown", unasked=why)


def undecidable(*reasons: str) -> Verdict:
    """The verdict of a run that could not be judged at all."""
    checks = {name: CheckResult(name, "unknown") for name in NAMES}
    return Verdict("unknown", (), reasons, checks)


def _results(
    expectation: Expectation, audit: Audit, blind: frozenset[Evidence], *, complete: bool
) -> dict[str, CheckResult]:
    results: dict[str, CheckResult] = {}
    withheld = {name for name in NAMES if BY_NAME[name].needs & blind}

    def excusable(example: Example) -> bool:
        return example.allowed is None and expectation.permitted(example.found.check, example.found.cause) is not None

    examples = {name: () if name in withheld else _examples(expectation, audit, name) for name in NAMES}
    # what the settings permit may have had its excuse in the very evidence that cannot be believed
    unjudged = {name for name, found in examples.items() if "excuses" in blind and any(map(excusable, found))}
    examples |= {name: tuple(each for each in examples[name] if not excusable(each)) for name in unjudged}
    places = {
        name: frozenset((each.found.topic, each.found.partition) for each in found)
        for name, found in examples.items()
        if found
    }
    explained = group(places)
    for name in NAMES:
        found = examples[name]
        count = sum(example.found.count for example in found)
        allowed = sum(example.found.count for example in found if example.allowed)
        state: State = "invalid" if count > allowed else "valid"
        off = name in withheld or (name in unjudged and state == "valid")
        if name in audit.failures or off or (state == "valid" and not complete):
            state = "unknown"
        failure = None if name in withheld else audit.failures.get(name)
        results[name] = CheckResult(name, state, count, allowed, found, explained.get(name), failure, withheld=off)
    return results


def _examples(expectation: Expectation, audit: Audit, name: str) -> tuple[Example, ...]:
    """The forbidden ones first."""
    found = [Example(each, _allowed(expectation, each)) for each in audit.found if each.check == name]
    return tuple(sorted(found, key=lambda example: example.allowed is not None))


def _allowed(expectation: Expectation, found: Found) -> str | None:
    reason = expectation.reason(found.check, found.cause, found.excuse)
    return reason if reason is None or found.event is None else f"{reason}; {found.event}"


def accusations(checks: Mapping[str, CheckResult], summaries: Mapping[str, str]) -> list[str]:
    """One line per anomaly that leads, in words, followed by those that it explains."""
    lines = []
    for check in checks.values():
        if not check.forbidden_count or _leader(check, checks) is not None:
            continue
        followers = [
            f"{other.name} ({other.forbidden_count})"
            for other in checks.values()
            if other.forbidden_count and _leader(other, checks) == check.name
        ]
        explains = f"; it explains {', '.join(followers)}" if followers else ""
        lines.append(f"{check.name}: {summaries[check.name]} ({check.forbidden_count}){explains}")
    return lines


def _leader(check: CheckResult, checks: Mapping[str, CheckResult]) -> str | None:
    """The anomaly under which this one is grouped: the end of its chain, if that is itself forbidden."""
    leader = check.explained_by
    while leader is not None and checks[leader].explained_by is not None:
        leader = checks[leader].explained_by
    return leader if leader is not None and checks[leader].forbidden_count else None
