"""``gapless verify`` and ``gapless report``: judge a stored run again, write its report again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.judge import judge
from chaos.commands.preflight import check_java, check_spark_master
from chaos.exits import VERDICTS, BadRequest
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.run_model import RunModel


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command("verify", help="Judge a stored run again from its evidence: no cluster is started.")(verify)
    app.command("report", help="Print where a run's report is, writing it first if it is absent.")(report)


def verify(
    path: Annotated[Path, typer.Argument(help="A run directory, for example results/latest.")],
    spark_master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    as_json: Annotated[bool, typer.Option("--json", help="Print verdict.json's object on stdout.")] = False,
) -> int:
    """Judge again and print the RESULT lines."""
    directory = _run_directory(path)
    if directory.broker_ids() and not any((directory.node(each) / "data").is_dir() for each in directory.broker_ids()):
        raise BadRequest(f"{path} cannot be judged again: its brokers' data was pruned; run with --keep all to keep it")
    check_java()
    check_spark_master(spark_master)
    return int(VERDICTS[judge(directory, spark_master, as_json=as_json)])


def report(path: Annotated[Path, typer.Argument(help="A run directory.")]) -> int:
    """Where the report is."""
    directory = _run_directory(path)
    if not directory.report_html.exists():
        judge(directory, "local[2]", as_json=False)
    print(directory.report_html)
    return int(VERDICTS[read_json(directory.verdict_json)["verdict"]])


def _run_directory(path: Path) -> RunDirectory:
    directory = RunDirectory(path.resolve())
    if not directory.run_json.is_file():
        raise BadRequest(f"{path} is not a run directory: it has no run.json")
    try:
        RunModel.from_json(directory.read_run())
    except (ValueError, json.JSONDecodeError) as error:
        raise BadRequest(f"{path}/run.json cannot be read: {error}") from error
    return directory
