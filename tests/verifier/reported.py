"""Runs and verdicts of which reports are made, and the page of one."""

from __future__ import annotations

from dataclasses import replace

from tests.support.settings import settings as run_settings
from tests.verifier.test_verdict import a_run, audit, closing, decide, found
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.excuses.expectation import RETRY
from verifier.report.page import report_html
from verifier.verdict import Verdict
from verifier.witness.effectiveness import Injected

SECOND = 1_000_000_000
FAULTS = [
    Injected("kill-leader", "b1", 3 * SECOND, 6 * SECOND, effective=True, skipped=False, probe={"running": False}),
    Injected("cut-link", "b1-b2", 7 * SECOND, None, effective=False, skipped=False, probe={"link": "b1-b2"}),
]
BATCH = {
    "broker": 1, "segment": 0, "position": 10, "base_offset": 4, "next_offset": 8, "leader_epoch": 2,
    "producer_id": 1001, "producer_epoch": 0, "base_sequence": 4, "record_count": 4,
}  # fmt: skip


def series(seconds: int, process: str = "producer-1") -> list[SeriesPoint]:
    return [
        SeriesPoint(process, n * SECOND, SECOND, acked=100 + n, latency_p50_ms=2.0, latency_p99_ms=20.0 + n)
        for n in range(1, seconds + 1)
    ]


def page(run: RunModel, verdict: Verdict, seconds: int = 10) -> str:
    return report_html(run, FAULTS, verdict, series(seconds))


def bad_verdict() -> Verdict:
    """A verdict with a cause, a consequence and something allowed."""
    neighbor = {**BATCH, "first_sequence": 0, "last_sequence": 3, "first_offset": 0, "last_offset": 3}
    context = {"stream_before": neighbor, "acknowledged": [{"offset": 7, "process": "p<1>", "complete_ns": SECOND}]}
    copies = {"copies": [{**BATCH, "offset": 5}, {**BATCH, "offset": 50}]}
    anomalies = [
        replace(found("lost-write", count=12), context=context),
        replace(found("inconsistent-offsets", "read"), context={"batch_at": [BATCH]}),
        replace(found("duplicate", "unidentified", count=3, excuse=RETRY), context=copies),
    ]
    run = a_run(settings=run_settings(idempotence=False, rate=0.0), faults_requested=["kill-leader", "cut-link"])
    return decide(run, audit(*anomalies), closing(*FAULTS))
