"""Links from the report to the existing files of its run, relative to the page. Owns the choice and the link texts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from verifier.evidence.run_directory import RunDirectory
from verifier.surroundings.model import FileLink

#: The most files of one kind that are linked.
MOST_ALIKE = 40

_ALONE = (
    "verdict.json", "summary.md", "junit.xml", "run.json", "seal.json", "schedule.yaml", "faults.jsonl",
    "leaders.jsonl", "resources.jsonl", "run.log", "proxy.log", "verifier.log",
)  # fmt: skip
_MANY = (
    "loadgen/*.html", "history/*.arrow", "nodes/*/broker.log", "nodes/*/process.log", "nodes/*/control.jsonl",
    "nodes/*/defects.jsonl", "nodes/zookeeper/zookeeper.log", "loadgen/*.log", "loadgen/*.series.jsonl",
    "loadgen/*_stats.csv", "loadgen/*_failures.csv", "loadgen/*_exceptions.csv",
)  # fmt: skip
#: These files are written after the page, and are always linked.
_ALWAYS = frozenset({"verdict.json", "summary.md", "junit.xml"})


def links(directory: RunDirectory) -> Iterator[FileLink]:
    """The files of the run that a reader of the report may want to open next."""
    for name in _ALONE:
        if name in _ALWAYS or (directory.path / name).is_file():
            yield _link(name)
    for pattern in _MANY:
        for path in sorted(directory.path.glob(pattern))[:MOST_ALIKE]:
            yield _link(path.relative_to(directory.path).as_posix())


def anomaly_links(directory: RunDirectory) -> Iterator[FileLink]:
    """The files that list every anomaly."""
    for path in sorted(directory.anomalies_dir.glob("*")):
        if path.suffix in (".csv", ".parquet", ".json"):
            # the link has the final path; the files may not have been moved there yet
            yield _link(path.relative_to(directory.anomalies_dir.parent).as_posix())


def _link(path: str) -> FileLink:
    # a leading "./" keeps a colon in a name from being read as a scheme
    return FileLink(f"./{quote(path)}", path)
