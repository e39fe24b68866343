"""``gapless verify`` and ``gapless report``: judge what is stored, runs and histories; write a run's report again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chaos.commands.preflight import check_java, check_spark_master
from chaos.commands.pruned import is_pruned, say_pruned
from chaos.commands.received import check_judged
from chaos.commands.stored_paths import A_RUN_OR_HISTORY, StoredPath, latest_run, run_directory, stored
from chaos.commands.talk import PlainQuiet
from chaos.commands.verdict_details import examples
from chaos.commands.verdict_lines import say, say_lines
from chaos.commands.verifier_process import judge, judge_all
from chaos.exits import VERDICTS, BadRequest, Exit
from chaos.sweeps.belonging import is_verdict_on
from cluster.process.invocation import command
from cluster.process.one_line import printable
from verifier.evidence.outputs import InTheWay
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.replacing import recorded
from verifier.telling.result_lines import result_lines
from verifier.verdict import undecidable

if TYPE_CHECKING:
    from verifier.operations.options import JudgeOptions

_WORST_FIRST = (Exit.HARNESS_FAILED, Exit.INVALID, Exit.UNKNOWN, Exit.VALID)


def register(app: typer.Typer) -> None:
    """Add both commands."""
    text = "Judge stored runs or operation histories from their evidence. Starts no cluster."
    app.command("verify", help=text)(verify)
    app.command("report", help="Print the path of a run's report; create the report first if it is missing.")(report)


def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH...]",
            help="Run directories, standalone loads (results/locust/...), operation histories (.edn, .jsonl, .json), "
            "or directories of a Jepsen store. [dim]default: results/latest[/dim]",
        ),
    ] = None,
    spark_master: Annotated[str, typer.Option(help="Spark master (runs only).")] = "local[2]",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the contents of verdict.json to stdout; for several paths, one per line."),
    ] = False,
    sub_via: Annotated[
        str | None,
        typer.Option(
            help="Histories only: how consumers got partitions: assign, subscribe, or both, comma-separated. subscribe "
            "allows poll-skip and nonmonotonic-poll. Default: what the history shows."
        ),
    ] = None,
    ww_deps: Annotated[
        bool, typer.Option("--ww-deps", help="Histories only: infer write-write dependencies from offsets; allows G1c.")
    ] = False,
    txn: Annotated[
        bool, typer.Option("--txn/--no-txn", help="Histories only: whether each operation is an atomic transaction.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(help="Histories only: directory for verdict.json, summary.md, junit.xml and anomalies/."),
    ] = None,
    quiet: PlainQuiet = False,
) -> int:
    """Judge each and print the RESULT lines; the exit status is the worst."""
    asked = [stored(path) for path in paths or [latest_run(A_RUN_OR_HISTORY, quiet=quiet)]]
    runs = list(dict.fromkeys(each.run for each in asked if each.run is not None and not is_pruned(each.run)))
    for each in asked:
        if each.load is not None:
            check_judged(each.load.path)
    options = _options(sub_via, ww_deps=ww_deps, txn=txn)
    if all(each.history is None and each.load is None for each in asked) and (
        sub_via is not None or ww_deps or not txn or out is not None
    ):
        raise BadRequest("--sub-via, --ww-deps, --no-txn and --out work only with operation histories; none is given")
    if out is not None and out.exists() and not out.is_dir():
        raise BadRequest(f"--out {out} is not a directory")
    if runs:
        check_java()
        check_spark_master(spark_master)
    if len(asked) == 1 and runs:
        return int(VERDICTS[judge(runs[0], spark_master, as_json=as_json, quiet=quiet)])
    saying = _InOrder(asked, runs, lambda each, place: _history(each, options, place, as_json=as_json), out, as_json)
    saying.go_on()
    if runs:
        judge_all(runs, spark_master, saying.judged, quiet=quiet)
    return int(next(status for status in _WORST_FIRST if status in saying.statuses))


class _InOrder:
    """Prints the outcome of each path in the given order, as soon as all earlier ones are printed.

    ``runs`` are those that a verifier judges meanwhile; all others are judged when their turn comes.
    """

    def __init__(
        self,
        asked: list[StoredPath],
        runs: list[RunDirectory],
        history: Callable[[StoredPath, Path | None], Exit],
        out: Path | None,
        as_json: bool,
    ) -> None:
        self.statuses: list[Exit] = []
        self._asked, self._history = asked, history
        self._out, self._as_json = out, as_json
        self._awaited = set(runs)
        self._failures: dict[RunDirectory, str | None] = {}

    def judged(self, run: RunDirectory, failure: str | None) -> None:
        """Note that a run is done. ``failure`` is why it has no verdict, None if it has one."""
        self._awaited.discard(run)
        self._failures[run] = failure
        self.go_on()

    def go_on(self) -> None:
        """Print all outcomes that can be printed now."""
        while len(self.statuses) < len(self._asked):
            each = self._asked[len(self.statuses)]
            if each.run in self._awaited:
                return
            self.statuses.append(self._say(each))

    def _say(self, each: StoredPath) -> Exit:
        several = len(self._asked) > 1
        if each.damage is not None:
            return _damaged(each, each.damage, as_json=self._as_json)
        if each.run is None:
            place = self._out
            if place is not None and several:
                place /= f"{len(self.statuses) + 1}-{each.given.name}"
            return self._history(each, place)
        if each.run in self._failures:
            return _run(each, each.run, self._failures[each.run], as_json=self._as_json)
        more = {"path": str(each.given)} if several else None
        return VERDICTS[say_pruned(each.run, as_json=self._as_json, more=more)]


def report(
    path: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run directory. [dim]default: results/latest[/dim]")
    ] = None,
) -> int:
    """Where the report is."""
    path = path or latest_run()
    directory = run_directory(path)
    # a verdict that was made from other evidence does not count, as in the list of runs
    is_there = directory.report_html.exists() and is_verdict_on(directory)
    try:
        recorded = read_json(directory.verdict_json) if is_there else {}
    except (OSError, ValueError):
        recorded = {}
    verdict = recorded.get("verdict")
    if verdict not in VERDICTS:
        if is_pruned(directory):
            raise BadRequest(
                f"{path} has no report, or no verdict with it, and cannot be judged again: its brokers' data was "
                "removed; repeat the run with --keep all"
            )
        check_java()
        verdict = judge(directory, "local[2]", as_json=False)
    print(directory.report_html)
    return int(VERDICTS[str(verdict)])


def _options(sub_via: str | None, *, ww_deps: bool, txn: bool) -> JudgeOptions:
    from verifier.operations.options import JudgeOptions, parse_methods

    try:
        return JudgeOptions(None if sub_via is None else parse_methods(sub_via), ww_deps, txn)
    except ValueError as error:
        raise BadRequest(str(error)) from error


def _damaged(asked: StoredPath, reason: str, *, as_json: bool) -> Exit:
    """Print why a run without its ``run.json``, or a load that never began, is not judged. Writes no file."""
    former = recorded(RunDirectory(asked.given))
    left = [] if former is None else [f"what is left is the previous verdict, {former}"]
    verdict = undecidable(reason, *left).to_json()
    lines = result_lines(verdict, repro=command(["verify", str(asked.given)]))
    whole = {**verdict, "run_dir": str(asked.given.resolve()), "path": str(asked.given)}
    return VERDICTS[say_lines(lines, whole, as_json=as_json)]


def _run(asked: StoredPath, run: RunDirectory, failure: str | None, *, as_json: bool) -> Exit:
    """Print how one of several runs was judged."""
    if failure is not None:
        return _no_verdict(asked.given, failure, as_json=as_json)
    return VERDICTS[say(run, as_json=as_json, more={"path": str(asked.given)})]


def _history(asked: StoredPath, options: JudgeOptions, out: Path | None, *, as_json: bool) -> Exit:
    """Judge a history in this process, because it needs no Spark."""
    from verifier.operations.report import write_reports
    from verifier.operations.verify_history import judge_file
    from verifier.verify_standalone import judge_load

    if asked.load is not None:
        out = out or asked.load.path
    try:
        judged = (
            judge_file(asked.history or asked.given, options)
            if asked.load is None
            else (judge_load(asked.load, options))
        )
        if out is not None:
            write_reports(out, judged)
    except InTheWay as error:
        raise BadRequest(str(error)) from error
    except OSError as error:
        return _no_verdict(asked.given, str(error), as_json=as_json)
    verdict = {**judged.to_json(), "path": str(asked.given)}
    summary = None if out is None else str(out / "summary.md")
    lines = result_lines(verdict, report=summary, repro=_repro(asked.given, options))
    said = say_lines(lines, verdict, as_json=as_json, shown=[*examples(verdict["checks"])])
    for note in judged.notes:
        print(f"  note: {printable(note)}", file=sys.stderr)
    return VERDICTS[said]


def _repro(path: Path, options: JudgeOptions) -> str:
    words = ["verify", str(path)]
    if options.sub_via is not None:
        words += ["--sub-via", ",".join(sorted(options.sub_via))]
    words += ["--ww-deps"] * options.ww_deps + ["--no-txn"] * (not options.transactions)
    return command(words)


def _no_verdict(path: Path, reason: str, *, as_json: bool) -> Exit:
    print(printable(f"gapless: {path}: no verdict: {reason}"), file=sys.stderr)
    if as_json:
        print(json.dumps({"path": str(path), "verdict": None, "error": reason}), flush=True)
    return Exit.HARNESS_FAILED
