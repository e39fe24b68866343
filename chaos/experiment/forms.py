"""How a value of an experiment is on the command line: what Typer parses it as, and back. Owns no option."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import chaos.schedules
from chaos.experiment.errors import ExperimentError
from chaos.schedules.model import Schedule, ScheduleError, from_yaml
from loadgen.documents import DocumentError, read_text
from loadgen.durations import plain_seconds, seconds_of

#: Schedules that come with us and are asked for by name, wherever we are installed.
CONTROLS = Path(chaos.schedules.__file__).parent / "controls"


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """A schedule that was given, and where it stands: ``repro`` names the file, or the name of one of ours."""

    path: Path
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Form:
    """One form: how a value is read from the command line and written back.

    ``kind`` is what Typer parses; ``read`` makes the value of it, ``shown`` the default in Typer's form, ``words`` the
    arguments that ask for a value again. Both take values alone, never None. ``parser`` is for texts that Typer cannot
    read by itself; its ValueErrors are Typer's refusals.
    """

    kind: Any
    read: Callable[[Any], Any]
    shown: Callable[[Any], Any]
    words: Callable[[str, Any], list[str]]
    parser: Callable[[Any], Any] | None = None


class Truth(StrEnum):
    """A yes or no that is said aloud."""

    TRUE = "true"
    FALSE = "false"


def _same(value: Any) -> Any:
    return value


def _one(option: str, value: Any) -> list[str]:
    return [option, str(value)]


def plain(kind: type) -> Form:
    """A number or a text, as it is."""
    return Form(kind, _same, _same, _one)


def choice(kind: type[StrEnum]) -> Form:
    """One of a few texts."""
    return Form(kind, lambda chosen: str(chosen.value), kind, _one)


def aliased(kind: type[StrEnum], aliases: Mapping[str, StrEnum]) -> Form:
    """One of a few texts, some of which have another name."""

    def parse(text: object) -> StrEnum:
        try:
            return aliases[str(text)] if str(text) in aliases else kind(str(text))
        except ValueError:
            *others, last = kind
            raise ValueError(f"must be {', '.join(others)} or {last}, not {str(text)!r}") from None

    return replace(choice(kind), parser=parse)


def _schedule(path: Path) -> ScheduleFile:
    own = CONTROLS / f"{path}.yaml"
    is_own = path.name == str(path) and not path.exists() and own.is_file()
    try:
        return ScheduleFile(path, from_yaml(read_text(own if is_own else path)))
    except (DocumentError, ScheduleError) as error:
        raise ExperimentError(f"--schedule {path}: {error}") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(part for each in text.split(",") if (part := each.strip()))


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


#: Said or not.
FLAG = Form(bool, _same, _same, lambda option, value: [option] if value else [])
#: ``true`` or ``false``, so that either can be said against a default.
TRUTH = Form(
    Truth,
    lambda truth: truth is Truth.TRUE,
    lambda value: Truth(str(value).lower()),
    lambda option, value: [option, str(value).lower()],
)
#: An option that may come several times; its default, none at all, is not shown.
REPEATED = Form(list[str], tuple, lambda _: None, _each)
#: Comma-separated names.
NAMES = Form(str, _names, ",".join, lambda option, value: [option, ",".join(value)])
#: Seconds, also said as 90s, 5m or 1h30m.
DURATION = Form(float, _same, _same, lambda option, seconds: [option, plain_seconds(seconds)], parser=seconds_of)
#: A file with a schedule.
SCHEDULE = Form(Path, _schedule, _same, lambda option, value: [option, str(value.path)])
