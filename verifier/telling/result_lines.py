"""The lines that end every run, for scripts: RESULT, the report, and how to repeat it. Owns their words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifier.verdict import UNCOUNTED


def result_lines(
    verdict: Mapping[str, Any], *, repro: str, seed: int | None = None, report: str | None = None
) -> list[str]:
    """The lines that end a run, or the judging of a history, from ``verdict.json``'s object.

    A history has no seed, and a report only if one was asked for. ``?`` stands for what was never counted.
    """
    forbidden, allowed = [], []
    for name, check in verdict["checks"].items():
        let_off = int(check.get("allowed_count", check["count"] if check["allowed"] else 0))
        if check["count"] > let_off:
            forbidden.append(f"{name}:{check['count'] - let_off}")
        if let_off:
            allowed.append(f"{name}:{let_off}")
    stats = verdict["stats"]
    # a check that was withheld or failed has found neither something nor nothing
    silent = any(check.get("withheld") or check.get("failure") for check in verdict["checks"].values())
    none = "none" if stats and not silent else UNCOUNTED
    words = [
        f"RESULT {verdict['verdict']}",
        *([] if seed is None else [f"seed={seed}"]),
        f"acked={stats.get('acked', UNCOUNTED)}",
        f"read={stats.get('read', UNCOUNTED)}",
        f"anomalies={','.join(forbidden) or none}",
        f"allowed={','.join(allowed) or none}",
    ]
    return [" ".join(words), *([] if report is None else [f"report: {report}"]), f"repro: {repro}"]
