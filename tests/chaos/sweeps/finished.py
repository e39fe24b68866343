"""Finished runs of cells, written by hand: what the runner and the reports read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.experiment.verdict_settings import settings_of
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell
from tests.support.settings import run_model
from verifier.anomalies import NAMES
from verifier.evidence.run_directory import append_json_line, write_json_atomic
from verifier.evidence.run_model import PhaseSpan
from verifier.evidence.series import SeriesPoint

SECOND = 1_000_000_000


def asked_as_run(cell: Cell) -> dict[str, Any]:
    """What a run of this cell has in ``run.json``: also its own directory, and where its schedule stood."""
    asked = replace(cell.asked, out="somewhere/else", keep="all", unjudged=True)
    if cell.schedule is not None:
        asked = replace(asked, schedule=ScheduleFile(Path("schedules/it.yaml"), cell.schedule))
    plain: dict[str, Any] = json.loads(json.dumps(resolve(asked)[0].to_json()))
    return plain


def finish(
    directory: SweepDirectory,
    cell: Cell,
    *,
    verdict: str = "valid",
    allowed: Mapping[str, int] | None = None,
    forbidden: Mapping[str, int] | None = None,
    records_per_s: int = 1_000,
    interrupted: bool = False,
    counted: bool = True,
) -> None:
    """Leave the run directory of a cell that came to a verdict; ``allowed`` and ``forbidden`` count by check.

    ``counted`` False: a history is missing, so that checks are withheld and nothing is known of what was told.
    """
    let_off, not_let_off = dict(allowed or {}), dict(forbidden or {})
    run = directory.run(cell)
    run.path.mkdir()
    run.prepare()
    asked = cell.asked
    model = run_model(
        name=asked.name,
        seed=asked.seed,
        settings=settings_of(resolve(asked)[0]),
        experiment=asked_as_run(cell),
        phases=[PhaseSpan("start", 0, SECOND), PhaseSpan("chaos", SECOND, 4 * SECOND)],
        interrupted=interrupted,
        repro=f".venv/bin/gapless run --seed {asked.seed}",
        exit_status={"valid": 0, "invalid": 1, "unknown": 2}[verdict],
    )
    write_json_atomic(run.run_json, model.to_json())
    for second in range(1, 6):
        # The first lies before the load and the last behind it.
        point = SeriesPoint("producers", second * SECOND, SECOND, acked=records_per_s if 1 < second < 5 else 77)
        append_json_line(run.series_jsonl("producers"), point.to_json())
    checks = {
        name: {
            "count": let_off.get(name, 0) + not_let_off.get(name, 0),
            "allowed_count": let_off.get(name, 0),
            "allowed": name in let_off and name not in not_let_off,
            "withheld": not counted and name == "lost-write",
        }
        for name in NAMES
    }
    stats = {
        "acked": 3 * records_per_s,
        "read": 3 * records_per_s,
        "unknown": 5,
        "faults": {"injected": 3, "effective": 2},
    }
    if not counted:
        stats = {"faults": stats["faults"]}
    reasons = [] if verdict == "valid" else [f"{verdict} on purpose"]
    written = {"verdict": verdict, "reasons": reasons, "checks": checks, "stats": stats}
    write_json_atomic(run.verdict_json, {**written, "availability": {"longest_gap_ms": 12.5}})
    failure = "<failure/>" if not_let_off else ""
    run.junit_xml.write_text(
        f'<testsuite name="gapless" tests="1" failures="{len(failure) and 1}" errors="0" skipped="0" time="3.5">'
        f'<testcase name="lost-write">{failure}</testcase></testsuite>'
    )
