"""How the values of options are read from the command line and written back. Owns no option (``asked`` does)."""

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

#: The directory of the schedules that gapless includes, which are requested by name.
CONTROLS = Path(chaos.schedules.__file__).parent / "controls"


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """A given schedule, and the path of its file or the name of an included one, for ``repro``."""

    path: Path
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Form:
    """One form of values.

    ``kind`` is the type that Typer parses, ``read`` converts it to the value, ``shown`` converts a default to Typer's
    form, and ``words`` makes the arguments for an option with a value. None of them gets None as a value. ``parser`` is
    for texts that Typer cannot parse itself; its ValueErrors become Typer's error messages.
    """

    kind: Any
    read: Callable[[Any], Any]
    shown: Callable[[Any], Any]
    words: Callable[[str, Any], list[str]]
    parser: Callable[[Any], Any] | None = None


class Truth(StrEnum):
    """A boolean that is written as ``true`` or ``false``."""

    TRUE = "true"
    FALSE = "false"


def _same(value: Any) -> Any:
    return value


def _one(option: str, value: Any) -> list[str]:
    return [option, str(value)]


def plain(kind: type) -> Form:
    """A number or a text, unchanged."""
    return Form(kind, _same, _same, _one)


def choice(kind: type[StrEnum]) -> Form:
    """One of a few texts."""
    return Form(kind, lambda chosen: str(chosen.value), kind, _one)


def aliased(kind: type[StrEnum], aliases: Mapping[str, StrEnum]) -> Form:
    """One of a few texts, some of which have aliases."""

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


#: An option without a value.
FLAG = Form(bool, _same, _same, lambda option, value: [option] if value else [])
#: ``true`` or ``false``, so that both can override a default.
TRUTH = Form(
    Truth,
    lambda truth: truth is Truth.TRUE,
    lambda value: Truth(str(value).lower()),
    lambda option, value: [option, str(value).lower()],
)
#: An option that may be repeated. Its default, no value, is not shown.
REPEATED = Form(list[str], tuple, lambda _: None, _each)
#: Comma-separated names.
NAMES = Form(str, _names, ",".join, lambda option, value: [option, ",".join(value)])
#: Seconds, also written as 90s, 5m or 1h30m.
DURATION = Form(float, _same, _same, lambda option, seconds: [option, plain_seconds(seconds)], parser=seconds_of)
#: A file with a schedule.
SCHEDULE = Form(Path, _schedule, _same, lambda option, value: [option, str(value.path)])
