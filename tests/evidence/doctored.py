"""The runs that a skeptic doctors first, and one for each listed equivalent: what is done, and what must come of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.evidence.rows import remove_message

#: What is expected, the file that was touched, and how.
Case = tuple[str, str, Callable[[Path], Any]]


def unlink(path: Path) -> None:
    path.unlink()


def cut_a_line(path: Path) -> None:
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")


def cut_at_a_batch(path: Path) -> None:
    assert remove_message(path, Random(1))


def with_fields(**fields: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")

    return change


def broker_failed(path: Path) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    next(child for child in run["children"] if child["name"] == "broker-1")["exit_code"] = 1
    path.write_text(json.dumps(run), encoding="utf-8")


#: The runs that a skeptic doctors first. The last ones are the equivalents, one for each entry of the list.
CASES: dict[str, Case] = {
    "a producer's history removed": ("unknown", "history/producer-1.arrow", unlink),
    "a producer's history cut at a batch": ("unknown", "history/producer-1.arrow", cut_at_a_batch),
    "a reader's history removed": ("unknown", "history/reader-1.arrow", unlink),
    "a final reader's history removed": ("unknown", "history/final-1.arrow", unlink),
    "a broker's exit status changed": ("unknown", "run.json", broker_failed),
    "the seed changed": ("unknown", "run.json", with_fields(seed=2)),
    "a line of the faults removed": ("unknown", "faults.jsonl", cut_a_line),
    "a line of the leaders removed": ("unknown", "leaders.jsonl", cut_a_line),
    "the seal removed": ("unknown", "seal.json", unlink),
    "a replica removed": ("noticed", "nodes/2/data/t-0", lambda path: shutil.rmtree(path)),
    "a segment removed": ("noticed", "nodes/1/data/t-0/00000000000000000000.log", unlink),
    "the end and the exit status changed": ("run.json", "run.json", with_fields(ended="2030-01-01", exit_status=0)),
    "the seal written otherwise": ("seal.json", "seal.json", with_fields()),
    "the verdict edited": ("unsealed", "verdict.json", lambda path: path.write_text("{}", encoding="utf-8")),
    "a log of ZooKeeper removed": ("unsealed", "nodes/zookeeper/zookeeper.log", unlink),
    "a file added at the top": ("beside", "notes.txt", lambda path: path.write_text("mine", encoding="utf-8")),
}
