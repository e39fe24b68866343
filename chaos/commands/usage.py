"""Rewords Typer's refusals of a command line as one line in gapless's own style. Pure.

Typer checks values with pydantic, whose messages are about inputs and value errors. Common messages are reworded like
those of the settings' own checks; the others are passed on. Owns the wording. Does not parse command lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from typer.exceptions import TyperException

from chaos.commands import other_tools

#: pydantic's error type -> what is wrong with the value. Braces are filled with the error's context.
_WORDS = {
    "int_parsing": "must be an integer, not {given}",
    "int_parsing_size": "must be a smaller integer than {given}",
    "float_parsing": "must be a number, not {given}",
    "bool_parsing": "must be true or false, not {given}",
    "greater_than_equal": "must be at least {ge}, not {given}",
    "less_than_equal": "must be at most {le}, not {given}",
}
_OUR_PREFIX = "Value error, "
#: Typer's own texts, as (pattern, words) with the groups of the pattern; ``{command}`` is the command.
_TEXTS = (
    (re.compile(r"Missing argument '(.+?)'\. Choose from:\s*(.*?)\.?", re.DOTALL), "{command} needs one of {1}"),
    (re.compile(r"Missing (?:argument|option) '(.+?)'\.?"), "{command} needs {0}"),
    (re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL), "{command} takes no argument {0!r}"),
    (re.compile(r"Option '?([^' ]+)'? requires an argument\.?"), "{0} needs a value"),
    (re.compile(r"Option '?([^' ]+)'? does not take a value\.?"), "{0} takes no value"),
)


def empty_option(arguments: Sequence[str]) -> str | None:
    """The line for an option or an argument that is an empty string, or None.

    No option of ours has a use for it, and a path of nothing would be the working directory.
    """
    for before, word in zip(["", *arguments], arguments, strict=False):
        name = (
            before if word == "" else word.removesuffix("=") if word.startswith("--") and word.endswith("=") else None
        )
        if name is not None:
            what = name if name.startswith("-") else "an argument"
            return f"{what} is empty; give it a value, or leave it out"
    return None


def asked_command(arguments: Sequence[str], command: Any) -> list[str]:
    """The words that name the command, such as ``groups list``; empty for an unknown command."""
    words: list[str] = []
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return words


def usage_line(
    error: TyperException, arguments: Sequence[str], asked: Sequence[str], commands: Collection[str], program: str
) -> str:
    """The line for a command line that Typer refused, with the help that lists the valid options.

    ``asked`` is the command that it names. ``program`` is how the user called us, so that the hint can be pasted.
    """
    if asked:
        return f"{_refusal(error, ' '.join(asked))}{see_help(program, *asked)}"
    first = arguments[0] if arguments else ""
    if first and not first.startswith("-"):
        return f"unknown command {first!r}{_instead(first, commands)}{see_help(program)}"
    if getattr(error, "option_name", None) is not None:
        wrong = f"{_refusal(error, 'gapless')} before the command"
        return f"{wrong}; it may belong after it, as in '{program} run --seed 7'{see_help(program)}"
    return f"{_refusal(error, 'gapless')}{see_help(program)}"


def see_help(program: str, *command: str) -> str:
    """The end of the line, which names the help to read."""
    return f" (see '{' '.join([program, *command, '--help'])}')"


def _instead(asked: str, commands: Collection[str]) -> str:
    if (known := other_tools.COMMANDS.get(asked)) is not None:
        return f"; {known}"
    # get_close_matches misses one wrong letter in a very short name
    near = get_close_matches(asked, commands, n=1) or [each for each in commands if _differ_by_one(each, asked)]
    return f"; did you mean {near[0]!r}?" if near else ""


def _differ_by_one(one: str, other: str) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def _refusal(error: TyperException, command: str) -> str:
    found = _first(error.__cause__)
    parameter = getattr(error, "param", None)
    if found is None or parameter is None:
        return _no_such_option(error) or _reworded(error.format_message(), command)
    options = [word for word in parameter.opts if word.startswith("--")]
    name = options[0] if options else str(parameter.metavar or parameter.name)
    words = _WORDS.get(str(found.get("type")))
    if words is None:
        said = str(found["msg"]).removeprefix(_OUR_PREFIX).rstrip(". ")
        return f"{name} {said}" if said.startswith("must ") else f"{name}: {said}"
    bounds = found.get("ctx")
    limits = {key: _bare(value) for key, value in bounds.items()} if isinstance(bounds, dict) else {}
    return f"{name} " + words.format(given=_bare(found.get("input")), **limits)


def _no_such_option(error: Any) -> str | None:
    """The message for an unknown option; None for another error."""
    if not hasattr(error, "possibilities"):
        return None
    known = [name for each in error.cmd.params for name in each.opts] if error.cmd is not None else []
    hint = other_tools.meant(error.option_name, known, error.possibilities or ())
    return f"unknown option {error.option_name}{f'; {hint}' if hint else ''}"


def _reworded(text: str, command: str) -> str:
    for pattern, words in _TEXTS:
        if (match := pattern.fullmatch(text)) is not None:
            return words.format(*match.groups(), command=command)
    return text.rstrip(". ")


def _first(cause: BaseException | None) -> dict[str, object] | None:
    """What pydantic found first; None if it was not asked."""
    errors = getattr(cause, "errors", None)
    return next(iter(errors()), None) if callable(errors) else None


def _bare(given: object) -> str:
    """A number as it was written, any other text in quotes."""
    if not isinstance(given, str):
        return f"{given:.16g}" if isinstance(given, (int, float)) else repr(given)
    try:
        float(given)
    except ValueError:
        return repr(given)
    return given.strip()
