"""The kinds of file that a run directory has, and what can be done to each: by unit and operation, in ways.

Owns the table. Every file of a run is of one kind, or nobody would notice that it is never tampered with.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tests.evidence import records, rows, text, whole
from tests.evidence.whole import Way

UNITS = ("file", "byte", "line", "row", "field")
OPERATIONS = ("remove", "repeat", "alter", "swap")

#: (unit, operation).
Cell = tuple[str, str]
Ways = Mapping[Cell, tuple[Way, ...]]

#: A file is swapped with a peer, which its path alone does not tell.
SWAP_FILES: Cell = ("file", "swap")

#: Whatever can be done to a directory.
DIRECTORY: Ways = {("file", "remove"): (whole.remove,), ("file", "repeat"): (whole.copy_beside,), SWAP_FILES: ()}
#: What can be done to a file that may be empty.
EMPTY: Ways = {**DIRECTORY, ("byte", "alter"): (whole.insert_byte,)}
#: What can be done to any file that holds something.
BYTES: Ways = {
    **DIRECTORY,
    ("file", "alter"): (whole.empty, whole.fill),
    ("byte", "remove"): (whole.cut_short, whole.remove_bytes),
    ("byte", "repeat"): (whole.repeat_end, whole.repeat_bytes),
    ("byte", "alter"): (whole.flip_bit, whole.flip_bit, whole.insert_byte),
    ("byte", "swap"): (whole.swap_bytes,),
}
LINES: Ways = {
    ("line", "remove"): (text.remove_line,),
    ("line", "repeat"): (text.repeat_line,),
    ("line", "alter"): (text.alter_line,),
    ("line", "swap"): (text.swap_lines,),
}
_CHANGES: Mapping[Cell, text.Change] = {
    ("field", "remove"): text.remove_field,
    ("field", "repeat"): text.repeat_field,
    ("field", "alter"): text.alter_field,
    ("field", "swap"): text.swap_fields,
}
DOCUMENT: Ways = {**BYTES, **LINES, **{cell: (text.in_document(each),) for cell, each in _CHANGES.items()}}
DOCUMENTS: Ways = {**BYTES, **LINES, **{cell: (text.in_line(each),) for cell, each in _CHANGES.items()}}
TEXT: Ways = {**BYTES, **LINES}
HISTORY: Ways = {
    **BYTES,
    ("byte", "remove"): (*BYTES["byte", "remove"], rows.lose_end),
    ("row", "remove"): (rows.remove_row, rows.remove_row, rows.remove_message),
    ("row", "repeat"): (rows.repeat_row, rows.repeat_row, rows.repeat_message),
    ("row", "alter"): (rows.alter_row,),
    ("row", "swap"): (rows.swap_rows,),
    ("field", "remove"): (rows.remove_column,),
    ("field", "repeat"): (rows.repeat_field,),
    ("field", "alter"): (rows.alter_field,),
    ("field", "swap"): (rows.swap_fields,),
}


def _of_rows(layout: records.Layout) -> Ways:
    """A file of records: none of them is without a field."""
    ways = records.Rows(layout)
    return {
        **BYTES,
        ("row", "remove"): (ways.remove_row,),
        ("row", "repeat"): (ways.repeat_row,),
        ("row", "alter"): (ways.alter_row,),
        ("row", "swap"): (ways.swap_rows,),
        ("field", "repeat"): (ways.repeat_field,),
        ("field", "alter"): (ways.alter_field,),
        ("field", "swap"): (ways.swap_fields,),
    }


class Kind(NamedTuple):
    """``patterns`` are of paths in a run directory; ``weight`` says how often the kind is drawn, beside the others."""

    name: str
    weight: int
    patterns: tuple[str, ...]
    ways: Ways
    directories: bool = False

    def paths(self, run: Path) -> list[Path]:
        """What there is of it in a run."""
        found = {path for pattern in self.patterns for path in run.glob(pattern)}
        return sorted(path for path in found if (path.is_dir() if self.directories else path.is_file()))

    def holds(self, path: str) -> bool:
        """Whether a file with this path is of this kind."""
        return not self.directories and any(_fits(path, pattern) for pattern in self.patterns)


def _fits(path: str, pattern: str) -> bool:
    """Whether ``Path.glob`` would find this path by this pattern."""
    if pattern.endswith("/**/*"):
        return path.startswith(pattern.removesuffix("**/*"))
    names, wanted = Path(path).parts, Path(pattern).parts
    return len(names) == len(wanted) and all(map(fnmatch, names, wanted))


KINDS: tuple[Kind, ...] = (
    Kind("run.json", 4, ("run.json",), DOCUMENT),
    Kind("seal", 2, ("seal.json",), DOCUMENT),
    Kind("histories of producers", 4, ("history/producer*.arrow",), HISTORY),
    Kind("histories of live readers", 3, ("history/reader*.arrow",), HISTORY),
    Kind("histories of final readers", 3, ("history/final-*.arrow",), HISTORY),
    Kind("history of the sentinel", 2, ("history/sentinel.arrow",), HISTORY),
    Kind("faults", 3, ("faults.jsonl",), DOCUMENTS),
    Kind("leaders", 3, ("leaders.jsonl",), DOCUMENTS),
    Kind("journals of brokers", 2, ("nodes/*/control.jsonl",), DOCUMENTS),
    Kind("series", 2, ("loadgen/*.series.jsonl",), DOCUMENTS),
    Kind("resources", 1, ("resources.jsonl",), DOCUMENTS),
    Kind("settings of the load", 1, ("loadgen/settings.json",), DOCUMENT),
    Kind("status of the load", 1, ("loadgen/*.status.json",), DOCUMENT),
    Kind("figures of the load", 1, ("loadgen/*.csv", "loadgen/*.html", "loadgen/*[!s].json",
                                    "loadgen/*[!gu]s.json"), TEXT),
    Kind("logs of the load", 1, ("loadgen/*.log",), TEXT),
    Kind("logs of brokers", 2, ("nodes/*/broker.log", "nodes/*/process.log"), TEXT),
    Kind("log of the proxy", 1, ("proxy.log",), TEXT),
    Kind("schedule", 1, ("schedule.yaml",), TEXT),
    Kind("replicas", 2, ("nodes/[0-9]*/data/*-[0-9]*",), DIRECTORY, directories=True),
    Kind("segments", 5, ("nodes/*/data/*/*.log",), _of_rows(records.BATCHES)),
    Kind("offset indexes", 2, ("nodes/*/data/*/*.index",), _of_rows(records.OFFSETS)),
    Kind("time indexes", 2, ("nodes/*/data/*/*.timeindex",), _of_rows(records.TIMES)),
    Kind("producer snapshots", 2, ("nodes/*/data/*/*.snapshot",), _of_rows(records.PRODUCERS)),
    Kind("producers' own files", 1, ("nodes/*/data/*/*.producers",), BYTES),
    Kind("leader epochs", 2, ("nodes/*/data/*/leader-epoch-checkpoint",), TEXT),
    Kind("topic ids", 2, ("nodes/*/data/*/partition.metadata",), TEXT),
    Kind("offset checkpoints", 2, ("nodes/*/data/*-offset-checkpoint",), TEXT),
    Kind("marks of a clean stop", 1, ("nodes/*/data/.kafka_cleanshutdown", "nodes/*/data/.gapless_clean_state"), TEXT),
    Kind("ids of brokers", 1, ("nodes/*/data/meta.properties",), TEXT),
    Kind("locks", 1, ("nodes/*/data/.lock",), EMPTY),
    Kind("what is told of a run", 1, ("verdict.json", "report.html", "summary.md", "junit.xml", "verifier.log",
                                      "run.log", "live.json", "anomalies/**/*"), TEXT),
    Kind("files of ZooKeeper", 1, ("nodes/zookeeper/**/*",), BYTES),
)  # fmt: skip


def kind_of(path: str) -> Kind | None:
    """The kind of the file with this path; None if it is of none."""
    return next((kind for kind in KINDS if kind.holds(path)), None)
