"""How a field of an experiment is declared: its option, its help, its bounds, and which verdict settings it decides.

Owns the form of a declaration, and how it is attached to a dataclass field. Declares nothing
(``chaos.experiment.asked`` does).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from chaos.experiment.forms import FLAG, Form, plain
from chaos.experiment.resolved import Resolved

#: Computes a field of the verifier's settings from the resolved experiment.
Decides = Callable[[Resolved], object]

_KEY = "declaration"


class Panel(StrEnum):
    """The groups of options in the help."""

    LOAD = "Load"
    CLUSTER = "Cluster"
    CHAOS = "Chaos"
    OUTPUT = "Output"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One field of an experiment: an option, its limits and its help.

    ``unset`` is the default as the help shows it. ``outside_repro`` says why the option is not part of the command that
    repeats a run; empty if it is. ``least`` and ``most`` bound numbers; ``shows_bounds`` shows the bounds in the help.
    ``among`` has the names that may be given. ``verdict`` has the fields of the verifier's settings that this option
    decides, and how; None means the value as given.
    """

    help: str
    panel: Panel
    option: str = ""
    form: Form | None = None
    unset: str = ""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    shows_bounds: bool = False
    among: tuple[str, ...] = ()
    outside_repro: str = ""
    verdict: Mapping[str, Decides | None] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field of a dataclass: its name, its default (``MISSING`` if it must be given) and its declaration."""

    name: str
    default: Any
    option: str
    form: Form
    declared: Declaration


def declared(text: str, panel: Panel, *, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """A dataclass field with a ``Declaration``. ``text`` is its help, ``more`` has its other fields."""
    metadata = {_KEY: Declaration(text, panel, **more)}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared_fields(kind: type) -> Iterator[Field]:
    """The fields of a dataclass in their order, as in the help. Raises TypeError for a field that is not declared."""
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        declaration = each.metadata.get(_KEY)
        if not isinstance(declaration, Declaration):
            raise TypeError(f"{kind.__name__}.{each.name} is not declared")
        option = declaration.option or "--" + each.name.replace("_", "-")
        yield Field(each.name, each.default, option, declaration.form or _form(hints[each.name]), declaration)


def check_declared(value: Any, error: type[Exception]) -> None:
    """Raise ``error`` with one line for the first field whose value its declaration does not allow."""
    for each in declared_fields(type(value)):
        given, declaration = getattr(value, each.name), each.declared
        if given is None:
            continue
        if given == "":
            raise error(f"{each.option} is empty; give it a value, or leave it out")
        if declaration.least is not None and given < declaration.least:
            raise error(f"{each.option} must be at least {declaration.least}, not {given}")
        if declaration.most is not None and given > declaration.most:
            raise error(f"{each.option} must be at most {declaration.most}, not {given}")
        if declaration.among:
            _check_names(each.option, given, declaration.among, error)


def _check_names(option: str, given: Sequence[str], among: tuple[str, ...], error: type[Exception]) -> None:
    known = ", ".join(among)
    if not given:
        raise error(f"{option} is empty; give a comma-separated list of {known}")
    for number, name in enumerate(given):
        if name not in among:
            raise error(f"{option} {name} is not known; give a comma-separated list of {known}")
        if name in given[:number]:
            raise error(f"{option} names {name} twice; leave one of them out")


def _form(hint: Any) -> Form:
    """The form of a plain type, or of one that may also be None."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if get_origin(hint) is UnionType else [hint]
    return FLAG if kinds == [bool] else plain(kinds[0])
