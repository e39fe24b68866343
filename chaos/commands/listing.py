"""``gapless list``: what can be named on the command line."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from chaos.faults.catalogue import FAULTS
from cluster.defects import CATALOGUE


class What(StrEnum):
    """The lists there are."""

    FAULTS = "faults"
    CHECKS = "checks"
    DEFECTS = "defects"
    WORKLOADS = "workloads"
    SWEEPS = "sweeps"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", help="List faults, checks, defects, workloads or sweeps, with a line on each.")(list_what)


def list_what(
    what: Annotated[What, typer.Argument(metavar="LIST", help="Which list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Print names and what they mean."""
    entries = _entries(what)
    if as_json:
        print(json.dumps(entries, indent=2))
        return 0
    width = max(map(len, entries), default=0)
    for name, summary in entries.items():
        print(f"{name:{width}}  {summary}")
    return 0


def _entries(what: What) -> dict[str, str]:
    if what is What.FAULTS:
        return {name: fault.summary for name, fault in FAULTS.items()}
    if what is What.CHECKS:
        from verifier.checks import CHECKS

        return {check.name: check.summary for check in CHECKS}
    if what is What.DEFECTS:
        return {name: defect.doc for name, defect in CATALOGUE.items()}
    if what is What.SWEEPS:
        from chaos.sweeps.catalogue import SWEEPS

        return {name: summary for name, (summary, _) in SWEEPS.items()}
    from loadgen.workloads import CATALOGUE as WORKLOADS

    return {name: workload.summary for name, workload in WORKLOADS.items()}
