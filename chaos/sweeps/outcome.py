"""Reads the outcome of one cell from its run directory.

Owns the value, and when a cell counts as judged, unjudged or interrupted. Judges no run (the verifier does), and does
not sum outcomes (``summary``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from chaos.exits import VERDICTS, Exit
from chaos.firings import fired
from chaos.reached import REACHED_FILE, Reached
from chaos.sweeps.belonging import is_verdict_on
from chaos.sweeps.first_evidence import first_evidence
from chaos.sweeps.model import COUNTED, EFFECTS, UNKNOWN, Cell
from cluster.seams.units import seconds_of_ns
from verifier.evidence.phases import CHAOS
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.run_model import PhaseSpan, RunModel
from verifier.evidence.series import SeriesPoint, read_all_series
from verifier.excuses.expectation import Expectation

#: ``unjudged``: it has run and is not judged yet; ``failed``: the harness failed; ``interrupted``: it ended early;
#: ``not run``: it has not run yet; ``inapplicable``: running it makes no sense; ``not asked``: it was not selected.
Status = Literal["judged", "unjudged", "failed", "interrupted", "not run", "inapplicable", "not asked"]


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The outcome of one cell.

    ``found`` counts each effect. ``allowed`` has the reason for each effect that the settings allow. ``forbidden``
    counts, by check, the anomalies that they do not allow. If evidence is missing, an effect is absent from ``found``,
    and ``acked`` and ``read`` (numbers of records) may be None.
    """

    status: Status
    verdict: str = ""
    exit_status: int | None = None
    found: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, int] = field(default_factory=dict)
    acked: int | None = None
    read: int | None = None
    records_per_s: float | None = None
    longest_gap_ms: float | None = None
    faults_injected: int = 0
    faults_effective: int = 0
    #: How often planted defects took effect. In a cell that must find a defect, only that defect counts.
    fired: int = 0
    #: How often each defect took effect.
    fired_by: Mapping[str, int] = field(default_factory=dict)
    #: The first evidence of the planted defect: after this many acknowledged records, and seconds of load.
    evidence_records: int | None = None
    evidence_s: float | None = None
    seconds: float | None = None
    reasons: tuple[str, ...] = ()
    repro: str = ""
    #: The commit of the sources that made the run; "" if they were not in a git checkout.
    commit: str = ""
    #: What the run reached, according to the brokers' journals.
    reached: Reached = field(default_factory=Reached)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CellOutcome:
        """The inverse of ``to_json``, without ``reached``. Raises KeyError."""
        names = [each.name for each in fields(cls) if each.name not in ("reasons", "reached")]
        return cls(**{name: value[name] for name in names}, reasons=tuple(map(str, value["reasons"])))


def shows_what_is_claimed(cell: Cell, outcome: CellOutcome) -> bool | None:
    """Whether the cell shows what it claims: each claimed effect was found or, without claims, no effect was.

    None if that is not known, because the cell was not judged or its evidence is incomplete.
    """
    if outcome.status != "judged":
        return None
    found = {name for name, count in outcome.found.items() if count and (name != UNKNOWN or name in cell.claims)}
    if outcome.verdict == "unknown" and not (cell.claims and set(cell.claims) <= found):
        return None
    return set(cell.claims) <= found if cell.claims else not found


def is_found(cell: Cell, outcome: CellOutcome) -> bool | None:
    """Whether a check that names the planted defect found a forbidden anomaly.

    None if the cell has no such defect or is not judged, or if the defect never took effect.
    """
    if not cell.finds or outcome.status != "judged" or not outcome.fired:
        return None
    return bool(set(cell.finds) & outcome.forbidden.keys())


def made_by(outcomes: Sequence[CellOutcome]) -> str:
    """A line that warns if the runs were made by different commits, that is, of different programs; else ""."""
    commits = Counter(each.commit or "an unknown commit" for each in outcomes if each.status == "judged")
    if len(commits) < 2:
        return ""
    return f"the runs were made by different commits: {', '.join(f'{name} ({n})' for name, n in commits.items())}"


def as_planted(cell: Cell, outcome: CellOutcome) -> CellOutcome:
    """The same, but a run with a defect gets exit status 0 if it was found, 1 if missed, 2 if it never fired."""
    if not cell.finds or outcome.status != "judged":
        return outcome
    status = {None: Exit.UNKNOWN, False: Exit.INVALID, True: Exit.VALID}[is_found(cell, outcome)]
    return replace(outcome, exit_status=int(status))


def sentence(outcome: CellOutcome) -> str:
    """The line about a cell on the terminal: why it is invalid or unknown, or else the counted effects."""
    if outcome.status != "judged":
        return f"{outcome.status}: {'; '.join(outcome.reasons)}"
    anomalies = ", ".join(f"{name} {count:,}" for name, count in outcome.forbidden.items())
    found, names = outcome.found, [effect.name for effect in EFFECTS]
    effects = ", ".join(f"{name} {found[name]:,}" for name in names if found.get(name))
    nothing = "not counted" if len(found) < len(COUNTED) else "nothing lost, duplicated or out of order"
    unsure = f", {found[UNKNOWN]:,} with unknown outcome" if found.get(UNKNOWN) else ""
    why = "; ".join(outcome.reasons) if outcome.verdict == "unknown" else ""
    speed = "" if outcome.records_per_s is None else f", {outcome.records_per_s:,.0f} records/s"
    return f"{outcome.verdict}: {anomalies or why or (effects or nothing) + unsure}{speed}"


def judged_outcome(cell: Cell, directory: RunDirectory) -> CellOutcome:
    """The outcome of a cell whose run is judged. Raises ``OSError`` or ``ValueError`` for a damaged directory."""
    outcome = outcome_of(directory)
    if not cell.finds:
        return outcome
    # the other planted defects only help the first one to fire, and need not be found
    planted = cell.asked.defects[0].partition(":")[0] if cell.asked.defects else ""
    outcome = as_planted(cell, replace(outcome, fired=outcome.fired_by.get(planted, 0)))
    named = [name for name in cell.finds if name in outcome.forbidden]
    first = first_evidence(directory, named) if named else None
    return outcome if first is None else replace(outcome, evidence_records=first.records, evidence_s=first.seconds)


def is_judged(directory: RunDirectory) -> bool:
    """Whether a run ended normally, that is, not by an interrupt, and has a verdict on its evidence."""
    try:
        run = directory.read_run()
        read_json(directory.verdict_json)
    except (OSError, ValueError):
        return False
    return run.get("exit_status") is not None and not run.get("interrupted") and is_verdict_on(directory)


def has_judgment(cell: Cell, directory: RunDirectory) -> bool:
    """Whether a cell's verdict is final, so that the cell is not run again.

    That is so if the run ended normally, or if it was interrupted and is invalid: a second run may not find the anomaly
    again. If the cell has to find a defect, an interrupted run does not count: half a run may be too short to find it.
    """
    return is_judged(directory) or (not cell.finds and _is_invalid_early(directory))


def _is_invalid_early(directory: RunDirectory) -> bool:
    try:
        run, verdict = directory.read_run(), read_json(directory.verdict_json)
    except (OSError, ValueError):
        return False
    was_judged = run.get("exit_status") is not None and is_verdict_on(directory)
    return bool(run.get("interrupted")) and was_judged and verdict.get("verdict") == "invalid"


def is_unjudged(directory: RunDirectory) -> bool:
    """Whether a run ended normally and sealed its evidence, but has no verdict yet."""
    try:
        run = directory.read_run()
    except (OSError, ValueError):
        return False
    has_ended = run.get("ended") is not None and not run.get("interrupted") and directory.seal_json.exists()
    return has_ended and run.get("exit_status") is None


def is_interrupted(directory: RunDirectory) -> bool:
    """Whether a run without a final verdict was interrupted. False if it was killed, for example."""
    try:
        return bool(directory.read_run().get("interrupted"))
    except (OSError, ValueError):
        return False


def interrupted(directory: RunDirectory) -> CellOutcome:
    """The outcome of an interrupted run. Its verdict does not count, but is shown, since it may have a report."""
    try:
        verdict = str(read_json(directory.verdict_json)["verdict"])
    except (OSError, ValueError, KeyError, TypeError):
        verdict = ""
    return CellOutcome("interrupted", verdict=verdict, reasons=("interrupted before its end; --resume runs it again",))


def _reached(directory: RunDirectory) -> Reached:
    """What the run reached, from the file that it wrote; empty without one."""
    try:
        return Reached.from_json(read_json(directory.path / REACHED_FILE))
    except (OSError, ValueError, TypeError):
        return Reached()


def outcome_of(directory: RunDirectory) -> CellOutcome:
    """The outcome of a judged run. Raises ``OSError`` or ``ValueError`` for a damaged directory."""
    run, verdict = RunModel.from_json(directory.read_run()), read_json(directory.verdict_json)
    checks, stats = verdict["checks"], verdict["stats"]
    expectation = Expectation.of(run)
    allowed = {effect.name: expectation.permitted(effect.check, effect.cause) for effect in EFFECTS}
    faults = stats.get("faults") or {}
    times = fired(directory).times
    found: dict[str, int | None] = {
        effect.name: None if checks[effect.check].get("withheld") else checks[effect.check]["count"]
        for effect in EFFECTS
    }
    found[UNKNOWN] = stats.get("unknown")
    return CellOutcome(
        status="judged",
        verdict=str(verdict["verdict"]),
        # not the one in run.json: the run may have been judged again since
        exit_status=int(VERDICTS.get(str(verdict["verdict"]), Exit.HARNESS_FAILED)),
        found={name: found[name] or 0 for name in COUNTED if found[name] is not None},
        allowed={name: reason for name, reason in allowed.items() if reason is not None},
        forbidden={
            name: int(check["count"] - check["allowed_count"])
            for name, check in checks.items()
            if check["count"] > check["allowed_count"]
        },
        acked=stats.get("acked"),
        read=stats.get("read"),
        records_per_s=throughput(run.phases, read_all_series(directory.loadgen_dir)),
        longest_gap_ms=verdict["availability"].get("longest_gap_ms"),
        faults_injected=int(faults.get("injected", 0)),
        faults_effective=int(faults.get("effective", 0)),
        fired=sum(times.values()),
        fired_by=dict(times),
        reached=_reached(directory),
        seconds=_seconds(run.phases),
        reasons=tuple(verdict["reasons"]),
        repro=run.repro,
        commit=run.versions.get("commit", ""),
    )


def throughput(phases: list[PhaseSpan], series: list[SeriesPoint]) -> float | None:
    """Acknowledged records per second during the chaos phase, from the load's series; None if that is not known."""
    span = next((phase for phase in phases if phase.name == CHAOS and phase.end_ns is not None), None)
    if span is None or span.end_ns is None or span.end_ns <= span.start_ns:
        return None
    inside = [
        point
        for point in series
        if span.start_ns < point.time_ns - point.interval_ns // 2 and point.time_ns <= span.end_ns
    ]
    producers = {point.process for point in inside if point.acked}
    total = 0.0
    for process in producers:
        points = [point for point in inside if point.process == process]
        total += sum(point.acked for point in points) / seconds_of_ns(sum(point.interval_ns for point in points))
    return round(total, 1) if producers else None


def _seconds(phases: list[PhaseSpan]) -> float | None:
    ends = [phase.end_ns for phase in phases if phase.end_ns is not None]
    return round(seconds_of_ns(max(ends) - phases[0].start_ns), 1) if ends else None
