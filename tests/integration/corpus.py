"""The corpus: runs that failed once, which `make test-full` and pull requests play; each has to be valid ever since.

Owns the form of ``corpus.yaml``, and what is taken into it of the directory of a red run, of what ``gapless shrink``
left, or of a sweep: of each of its invalid runs the smallest that failed. A run with a planted defect is no one's bug.

python -m tests.integration.corpus results/nightly/TIME
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from chaos.experiment.command_line import words
from chaos.replay.stored_run import NoReplay, read_stored
from chaos.schedules.model import Schedule, ScheduleError, from_document, from_yaml, to_yaml
from chaos.shrinking.failure import leading
from chaos.sweeps.directory import CELLS, SHRUNK
from verifier.evidence.run_directory import RunDirectory, read_json

FILE = Path(__file__).with_name("corpus.yaml")
HEADER = "# Runs that failed once, each to be valid ever since. Written by python -m tests.integration.corpus.\n"
_KEYS = ("from", "found", "options", "schedule")


class NotTaken(Exception):
    """A directory gives no entry; one line says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run: ``options`` are those of ``gapless run`` without a schedule, None if it has none of its own.

    ``origin`` names the run that it comes from, ``found`` the anomalies that this one had.
    """

    origin: str
    found: tuple[str, ...]
    options: tuple[str, ...]
    schedule: Schedule | None

    def arguments(self, place: Path) -> list[str]:
        """Those of the command that plays it. Writes the schedule into ``place``."""
        if self.schedule is None:
            return ["run", *self.options]
        path = place / "schedule.yaml"
        path.write_text(to_yaml(self.schedule), encoding="utf-8")
        return ["run", *self.options, "--schedule", str(path)]


def form(entries: Sequence[Entry]) -> str:
    """The file's text."""
    document = [
        {
            "from": entry.origin,
            "found": list(entry.found),
            "options": list(entry.options),
            **({} if entry.schedule is None else {"schedule": yaml.safe_load(to_yaml(entry.schedule))}),
        }
        for entry in entries
    ]
    return HEADER + yaml.safe_dump({"entries": document}, sort_keys=False, width=120, default_flow_style=None)


def parse(text: str) -> list[Entry]:
    """A file's text read back. Raises ``ValueError`` with the entry that is wrong."""
    document = yaml.safe_load(text)
    if not isinstance(document, dict) or list(document) != ["entries"] or not isinstance(document["entries"], list):
        raise ValueError("a corpus is a mapping with the list 'entries'")
    entries = [_entry(number, each) for number, each in enumerate(document["entries"], 1)]
    names = [entry.origin for entry in entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]} is there twice")
    return entries


def _entry(number: int, value: Any) -> Entry:
    if not isinstance(value, dict) or not {"from", "found", "options"} <= set(value) <= set(_KEYS):
        raise ValueError(f"entry {number} must have from, found, options and perhaps schedule, and nothing else")
    lists = (value["found"], value["options"])
    if not all(isinstance(each, list) and each and all(isinstance(word, str) for word in each) for each in lists):
        raise ValueError(f"entry {number}: found and options are lists of texts")
    if wrong := {"--defect", "--schedule", "--out"} & set(value["options"]):
        raise ValueError(f"entry {number}: {min(wrong)} is not for a corpus")
    try:
        schedule = from_document(value["schedule"]) if "schedule" in value else None
    except ScheduleError as error:
        raise ValueError(f"entry {number}: {error}") from error
    return Entry(str(value["from"]), tuple(value["found"]), tuple(value["options"]), schedule)


def kept() -> list[Entry]:
    """Those of the file."""
    return parse(FILE.read_text(encoding="utf-8"))


def taken(directory: Path) -> Iterator[Entry | str]:
    """The entries of a directory, and for each run that gives none why. Raises NotTaken."""
    if (directory / CELLS).is_dir():
        for cell in sorted((directory / CELLS).iterdir()):
            shrunk = directory / SHRUNK / cell.name
            try:
                if not _is_invalid(cell):
                    continue
                yield of_shrunk(shrunk, cell.name) if _has_best(shrunk) else of_run(cell, cell.name)
            except NotTaken as error:
                yield str(error)
        return
    made = of_shrunk if (directory / "shrink.json").is_file() else of_run
    yield made(directory, directory.resolve().name)


def of_run(directory: Path, name: str) -> Entry:
    """A run as it happened: what struck, when it struck. Raises NotTaken."""
    verdict = _read(directory / "verdict.json")
    if not _is_invalid(directory):
        raise NotTaken(f"{directory} is {verdict.get('verdict')}: only what is invalid is collected")
    try:
        of = read_stored(RunDirectory(directory), with_faults=False)
    except (NoReplay, OSError, ValueError, KeyError, TypeError) as error:
        raise NotTaken(f"{directory} cannot be played again: {error}") from error
    is_calm = not of.schedule.injections
    asked = replace(of.asked, schedule=None, faults="none" if is_calm else None)
    return _without_planted(
        directory, Entry(name, leading(verdict), tuple(words(asked)[1:]), None if is_calm else of.schedule)
    )


def of_shrunk(directory: Path, name: str) -> Entry:
    """The smallest that failed, of what shrinking left. Raises NotTaken."""
    whole = _read(directory / "shrink.json")
    if not _has_best(directory):
        raise NotTaken(f"{directory}: the run did not fail again, so there is nothing smaller; name the run itself")
    options, schedule = [str(word) for word in whole["best"]["play"][1:]], None
    if "--schedule" in options:
        at = options.index("--schedule")
        del options[at : at + 2]
        try:
            schedule = from_yaml((directory / "schedule.yaml").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotTaken(f"{directory}/schedule.yaml cannot be read: {error}") from error
    return _without_planted(directory, Entry(name, tuple(whole["anomalies"]), tuple(options), schedule))


def _without_planted(directory: Path, entry: Entry) -> Entry:
    if "--defect" in entry.options:
        raise NotTaken(f"{directory}: its defect was planted on purpose")
    return entry


def _has_best(directory: Path) -> bool:
    try:
        return read_json(directory / "shrink.json")["best"] is not None
    except (OSError, ValueError, KeyError):
        return False


def _is_invalid(directory: Path) -> bool:
    try:
        return bool(read_json(directory / "verdict.json")["verdict"] == "invalid")
    except (OSError, ValueError, KeyError):
        return False


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise NotTaken(f"{path} cannot be read: {error}") from error


def main(arguments: Sequence[str]) -> int:
    """Take the runs of these directories into the file, those that are not there yet, and say it."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.corpus", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIRECTORY")
    parser.add_argument("--file", type=Path, default=FILE, help="instead of tests/integration/corpus.yaml")
    given = parser.parse_args(arguments)
    try:
        entries = parse(given.file.read_text(encoding="utf-8")) if given.file.exists() else []
        for directory in given.directories:
            for each in taken(directory):
                entries = _with(entries, each)
    except (NotTaken, ValueError) as error:
        sys.stderr.write(f"corpus: {error}\n")
        return 1
    given.file.write_text(form(entries), encoding="utf-8")
    return 0


def _with(entries: list[Entry], each: Entry | str) -> list[Entry]:
    if isinstance(each, str):
        sys.stdout.write(f"not taken: {each}\n")
        return entries
    same = [entry for entry in entries if (entry.options, entry.schedule) == (each.options, each.schedule)]
    if same or each.origin in {entry.origin for entry in entries}:
        sys.stdout.write(f"there already: {each.origin}\n")
        return entries
    sys.stdout.write(f"taken: {each.origin}: {', '.join(each.found)}\n")
    return [*entries, each]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
