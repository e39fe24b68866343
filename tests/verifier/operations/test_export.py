"""A run's histories as operations: what the verifier finds in the export is what it finds in the run."""

from __future__ import annotations

from pathlib import Path

from tests.verifier.planted import PLANTED, planted_story
from verifier.operations.export import export_run
from verifier.operations.options import JudgeOptions
from verifier.operations.verdict import ClientVerdict, judge_file
from verifier.operations.writing import FORMS


def exported(name: str, home: Path, form: str = "jsonl") -> ClientVerdict:
    directory = planted_story(name).write(home / "run")
    path = home / f"history.{form}"
    path.write_text("".join(FORMS[form](line) + "\n" for line in export_run(directory.history_dir).lines))
    return judge_file(path, JudgeOptions())


def test_show(tmp_path: Path) -> None:
    """x"""
    for number, name in enumerate(PLANTED):
        (tmp_path / str(number)).mkdir()
        judged = exported(name, tmp_path / str(number))
        run = {}
        for (check, cause), fields in PLANTED[name].expected.items():
            run[check, cause] = fields.get("count")
        mine = {n: c.count for n, c in judged.verdict.checks.items() if c.count}
        print(f"{name!r}: run {run} mine {mine} {judged.verdict.doubts}")
