"""``summary.md`` and ``junit.xml`` of a sweep, for the summary and the test results of a CI job. Owns their form.

Both list each run separately. (The other pages sum over seeds.) After a night with failures, a reader needs the runs
that failed, and how to repeat them. ``junit.xml`` joins the runs' own ``junit.xml`` files, which have the result of
each check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

from chaos.sweeps.directory import CELLS, SHRUNK, SweepDirectory
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.outcome import CellOutcome, made_by
from chaos.sweeps.reach import kept, together
from chaos.sweeps.report.words import found, key
from chaos.sweeps.shrunk import Shrunk
from chaos.sweeps.summary import FOUND, MISSED, counted, ending, state_of, verdict_of
from cluster.process.one_line import printable
from verifier.evidence.texts import fit_for_xml
from verifier.telling.markdown import code, inline, table

_COUNTS = ("tests", "failures", "errors", "skipped")


def summary_md(sweep: Sweep, outcomes: Mapping[str, CellOutcome], shrunk: Mapping[str, Shrunk] | None = None) -> str:
    """The page as text. ``shrunk`` has the results of shrinking, by cell name."""
    return "\n".join(_lines(sweep, outcomes, shrunk or {})) + "\n"


def _lines(sweep: Sweep, outcomes: Mapping[str, CellOutcome], shrunk: Mapping[str, Shrunk]) -> Iterator[str]:
    counts = counted(list(outcomes.values()))
    yield f"# {state_of(sweep, outcomes) or 'nothing run'}: sweep {sweep.name}"
    yield ""
    yield f"{', '.join(f'{count} {name}' for name, count in counts.items()) or 'no cells were selected'}."
    ran = [(cell, outcomes[cell.name]) for cell in sweep.cells if verdict_of(outcomes[cell.name])]
    if planted := dict.fromkeys(defect for cell, _ in ran for defect in cell.asked.defects):
        yield f"Planted on purpose: {', '.join(map(code, planted))}."
    if others := made_by(list(outcomes.values())):
        yield f"Note: {inline(others)}."
    yield ""
    if ran:
        yield from table(
            ("run", "verdict", "anomalies", "acknowledged", "faults that bit", "seconds"),
            [(inline(key(cell)), _told(cell, outcome), *_figures(outcome)) for cell, outcome in ran],
        )
    red = [(cell, outcome) for cell, outcome in ran if ending(cell, outcome) not in ("valid", FOUND)]
    if red:
        yield "## Not valid"
        yield ""
    for cell, outcome in red:
        yield f"- **{ending(cell, outcome)}**: {inline(key(cell))}: {inline(found(outcome))}"
        yield from (f"  - {inline(reason)}" for reason in outcome.reasons)
        if outcome.repro:
            yield f"  - repeat the schedule (not the interleaving): {code(outcome.repro)}"
        yield f"  - kept whole in {code(f'{CELLS}/{cell.name}')}"
        if (smaller := shrunk.get(cell.name)) is not None:
            where = f"; {code(f'{SHRUNK}/{cell.name}/schedule.yaml')}" if smaller.play else ""
            yield f"  - {inline(str(smaller))}{where}"
    yield from _reached(sweep, outcomes)


def _told(cell: Cell, outcome: CellOutcome) -> str:
    """The verdict and, for a run with a planted defect, whether that was found."""
    return ", ".join(dict.fromkeys((verdict_of(outcome), ending(cell, outcome))))


def _reached(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> Iterator[str]:
    """What all runs reached, and which runs reached something first."""
    if not (reached := together(sweep, outcomes).figures()):
        return
    yield ""
    yield "## Reached"
    yield ""
    yield from table(("what", "in all runs"), [(inline(name), inline(text)) for name, text in reached.items()])
    for each in kept(sweep, outcomes):
        yield f"- {code(each.cell)} was the first with: {inline('; '.join(each.new))}"


def _figures(outcome: CellOutcome) -> tuple[str, str, str, str]:
    return (
        inline(found(outcome)),
        "?" if outcome.acked is None else f"{outcome.acked:,}",
        f"{outcome.faults_effective} of {outcome.faults_injected}",
        "" if outcome.seconds is None else f"{outcome.seconds:.0f}",
    )


def junit_xml(directory: SweepDirectory, sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> str:
    """The document as text: a suite for each cell that was run, taken from the run's own file.

    In a run with a planted defect, checks are supposed to fail. Its suite has one test instead: whether the defect was
    found.
    """
    suites = [_suite(directory, sweep, cell, outcomes[cell.name]) for cell in sweep.cells if _is_over(outcomes, cell)]
    sums = {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in _COUNTS}
    root = ET.Element("testsuites", {"name": f"gapless.{sweep.name}", **sums, "time": f"{sum(map(_time, suites)):.3f}"})
    root.extend(suites)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _time(suite: ET.Element) -> float:
    try:
        return float(suite.get("time", "0"))
    except ValueError:
        return 0.0


def _is_over(outcomes: Mapping[str, CellOutcome], cell: Cell) -> bool:
    return bool(verdict_of(outcomes[cell.name]))


def _suite(directory: SweepDirectory, sweep: Sweep, cell: Cell, outcome: CellOutcome) -> ET.Element:
    why, kind = "; ".join(outcome.reasons), str(outcome.status)
    if outcome.status == "judged" and cell.finds:
        kind = ending(cell, outcome)
        why = f"{kind}: {', '.join(cell.asked.defects)}; verdict {outcome.verdict}, anomalies={found(outcome)}"
    elif outcome.status == "judged":
        try:
            suite = ET.parse(directory.run(cell).junit_xml).getroot()
        except (OSError, ET.ParseError) as error:
            why = f"its junit.xml cannot be read: {error}"
        else:
            suite.set("name", f"gapless.{sweep.name}.{cell.name}")
            return suite
    names = {"classname": sweep.name, "name": cell.name}
    taken = {} if outcome.seconds is None else {"time": f"{outcome.seconds:.3f}"}
    wrong = {FOUND: "", MISSED: "failure"}.get(kind, "error")
    counts = {f"{each}s": str(int(each == wrong)) for each in ("failure", "error")}
    named = {"name": f"gapless.{sweep.name}.{cell.name}", "tests": "1", **counts, **taken}
    suite = ET.Element("testsuite", named)
    case = ET.SubElement(suite, "testcase", {**names, **taken})
    if wrong:
        ET.SubElement(case, wrong, {"message": printable(fit_for_xml(why)), "type": kind})
    return suite
