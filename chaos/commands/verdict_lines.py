"""Prints the end of every run: the RESULT lines, the reasons of the verdict, and with ``--json`` its object.

Owns which of it goes to stdout and which to stderr. Does not own the lines (``verifier.telling.result_lines``), nor the
judging (``verifier_process``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from chaos.commands.verdict_details import examples, planted
from cluster.process.one_line import printable
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.telling.result_lines import result_lines


def say(directory: RunDirectory, *, as_json: bool, more: Mapping[str, Any] | None = None) -> str:
    """Print the RESULT lines (with ``as_json``: to stderr, and the verdict's object to stdout). Returns the verdict.

    ``more`` is added to the object.
    """
    verdict = read_json(directory.verdict_json)
    run = directory.read_run()
    lines = result_lines(verdict, seed=run["seed"], report=str(directory.report_html), repro=run["repro"])
    whole = {**verdict, "run_dir": str(directory.path), "seed": run["seed"], "repro": run["repro"], **(more or {})}
    return say_lines(lines, whole, as_json=as_json, shown=[*examples(verdict["checks"]), *planted(directory)])


def say_lines(lines: Sequence[str], verdict: Mapping[str, Any], *, as_json: bool, shown: Sequence[str] = ()) -> str:
    """Print these lines, the verdict's reasons and what is shown for them, and its object if it is asked for.

    Returns the verdict.
    """
    print("\n".join(map(printable, lines)), file=sys.stderr if as_json else sys.stdout, flush=True)
    reasons, doubts = list(verdict["reasons"]), list(verdict.get("doubts", ()))
    found = reasons[: len(reasons) - len(doubts)]
    # anomalies come first, with their examples; doubts, such as an overloaded harness, are not anomalies
    for line in (*found, *shown, *(f"in doubt: {doubt}" if found else doubt for doubt in doubts)):
        print(f"  {printable(line)}", file=sys.stderr)
    for line in verdict.get("narrowed", ()):
        print(f"  {printable(line)}", file=sys.stderr)
    if as_json:
        print(json.dumps(verdict), flush=True)
    return str(verdict["verdict"])
