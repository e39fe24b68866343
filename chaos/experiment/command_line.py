"""Converts between an experiment and its command line: Typer options, their values, and the arguments of ``repro``.

Owns the conversion. Does not own any option (``chaos.experiment.asked``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from chaos.experiment.asked import Asked
from chaos.experiment.declaration import Field, declared_fields
from chaos.experiment.told import check_beside, scenario_fields
from cluster.seams.randomness import fresh_seed

FIELDS: Mapping[str, Field] = {each.name: each for each in declared_fields(Asked)}


def option(name: str) -> Any:
    """The declared option of a field, for a command that has its own signature."""
    return _option(FIELDS[name])


def _option(each: Field) -> OptionInfo:
    declaration = each.declared
    unset = f" [dim]default: {declaration.unset}[/dim]" if declaration.unset else ""
    more: dict[str, Any] = {"show_default": False} if unset else {}
    if declaration.shows_bounds:
        more |= {"min": declaration.least, "max": declaration.most}
    if each.form.parser is not None:
        more["parser"] = each.form.parser
    made: OptionInfo = typer.Option(
        each.option,
        help=declaration.help + unset,
        metavar=declaration.metavar,
        rich_help_panel=declaration.panel.value,
        **more,
    )
    return made


def _parameter(each: Field) -> inspect.Parameter:
    default = None if each.default in (MISSING, None) else each.form.shown(each.default)
    kind = each.form.kind if default is not None else each.form.kind | None
    return inspect.Parameter(
        each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, _option(each)]
    )


def with_options(run: Callable[..., int]) -> Callable[..., int]:
    """Make ``run(given, **own)`` a Typer command. ``given`` gets the values of the declared options, for ``asked_by``.

    The keyword-only parameters of ``run`` become further options of the command.
    """
    own = [
        each
        for each in inspect.signature(run, eval_str=True).parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    ]

    def command(context: typer.Context, **given: Any) -> int:
        return run({name: _said(context, name, given.pop(name)) for name in FIELDS}, **given)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *map(_parameter, FIELDS.values()), *own]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _said(context: typer.Context, name: str, value: object) -> object:
    """The value of an option; None if it was not given, because a default must not override a scenario."""
    source = context.get_parameter_source(name)
    return None if source is not None and source.name == "DEFAULT" else value


def asked_by(given: Mapping[str, Any], fresh_seed: Callable[[], int] = fresh_seed) -> Asked:
    """The experiment that these option values ask for. Raises ExperimentError.

    Without ``--seed``, the seed is that of the schedule, or else a random one.
    """
    values = {name: FIELDS[name].form.read(value) for name, value in given.items() if value is not None}
    if "scenario" in values:
        check_beside(values["scenario"], given)
        values = {**scenario_fields(values["scenario"]), **values}
    if "seed" not in values:
        schedule = values["schedule"].schedule if "schedule" in values else None
        values["seed"] = fresh_seed() if schedule is None or schedule.seed is None else schedule.seed
    return Asked(**values)


def words(asked: Asked, *, everything: bool = False) -> list[str]:
    """The arguments that request this run: options that differ from their defaults, and those without one (the seed).

    Without ``everything``, options that do not change the run are omitted (where it is written, what is kept of it).
    """
    return ["run", *_words(asked, everything=everything)]


def _words(asked: Asked, *, everything: bool) -> Iterator[str]:
    decided = {} if asked.scenario is None else scenario_fields(asked.scenario)
    for each in _in_order(list(FIELDS.values())):
        value = getattr(asked, each.name)
        if (
            value is None
            or value == decided.get(each.name, each.default)
            or (each.declared.outside_repro and not everything)
        ):
            continue
        yield from each.form.words(each.option, value)


def _in_order(fields: Sequence[Field]) -> list[Field]:
    """The fields, with those that have no default first."""
    return sorted(fields, key=lambda each: each.default is not MISSING)
