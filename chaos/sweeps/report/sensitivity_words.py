"""The sentences and tables about sensitivity, on the pages of a sweep and in ``docs/sensitivity.md``. Pure.

Does not own the figures (``sensitivity_figures``).
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.sweeps.sensitivity_figures import Count, Sensitivity
from verifier.evidence.how_many import how_many
from verifier.telling.markdown import code, inline, table

HEADINGS = ("defect", "exercise", "exercised", "found", "named", "true share", "as", "records", "seconds")
CONTROL_HEADINGS = ("exercise", "faults", "false alarms", "unknown")


def sentences(told: Sensitivity) -> list[str]:
    """The totals, in sentences."""
    confidence = f"{told['confidence']:.0%}"
    found = (
        f"Defects were exercised in {_of(told['exercised'])} runs, found in {_of(told['found'])} of these, and rightly "
        f"named in {_of(told['named'])}: a share of {_share(told['named'])}, with {confidence} confidence."
    )
    alarms = (
        f"False alarms: {_of(told['alarms'])} runs without a defect ({_of(told['healthy_alarms'])} without faults, "
        f"{_of(told['fault_alarms'])} with faults alone): a share of at most {told['alarms']['most']:.1%}, with "
        f"{confidence} confidence."
    )
    without = told.get("without_verdict", {})
    left = (
        f"Not counted: {how_many(sum(without.values()), 'run')} without a verdict "
        f"({', '.join(f'{count} {status}' for status, count in without.items())})."
    )
    unfired = told.get("accused_unfired", 0)
    which = "1 run is invalid although its" if unfired == 1 else f"{unfired} runs are invalid although their"
    accused = f"{which} defect never fired: either a false alarm, or a bug that no one planted."
    others = told.get("commits", "")
    return [
        *([found] if told["defects"] else []),
        *([alarms] if told["controls"] else []),
        *([left] if without else []),
        *([accused] if unfired else []),
        *([f"Note: {others}."] if others else []),
    ]


def rows(told: Sensitivity) -> list[list[str]]:
    """The table of defects: a row for each, with the columns in ``HEADINGS``."""
    return [
        [
            each["defect"],
            each["exercise"],
            _of(each["exercised"]),
            _of(each["found"]),
            _of(each["named"]),
            _share(each["named"]),
            ", ".join(f"{name} {count:,}" for name, count in each["anomalies"].items()),
            "" if each["records"] is None else f"{each['records']:,.0f}",
            "" if each["seconds"] is None else f"{each['seconds']:.1f}",
        ]
        for each in told["defects"]
    ]


def control_rows(told: Sensitivity) -> list[list[str]]:
    """The table of runs without a defect: a row for each exercise, with the columns in ``CONTROL_HEADINGS``."""
    return [
        [
            each["exercise"],
            "yes" if each["has_faults"] else "none",
            f"{each['alarms']} of {each['judged']}",
            str(each["unknown"]) if each["unknown"] else "",
        ]
        for each in told["controls"]
    ]


def markdown(told: Sensitivity) -> Iterator[str]:
    """The sentences and tables as lines of Markdown, with an empty line after each."""
    for sentence in sentences(told):
        yield inline(sentence)
        yield ""
    if told["defects"]:
        yield from table(HEADINGS, [[code(row[0]), *map(inline, row[1:])] for row in rows(told)])
    if told["controls"]:
        yield from table(CONTROL_HEADINGS, [[*map(inline, row)] for row in control_rows(told)])


def _of(count: Count) -> str:
    return f"{count['happened']} of {count['of']}"


def _share(count: Count) -> str:
    """The bounds of the true share in percent; "" if nothing was tried."""
    return f"{count['least']:.0%} to {count['most']:.0%}" if count["of"] else ""
