"""What is wrong with a command line, in one line in our own words. Owns the wording of Typer's refusals. Pure.

Typer checks values with pydantic, whose messages speak of inputs and value errors. What is common is said as the
settings' own checks say it; the rest is passed on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from typer.exceptions import TyperException

#: What pydantic calls it -> what is wrong with the value; braces are filled with what the error holds.
_WORDS = {
    "int_parsing": "must be an integer, not {given}",
    "int_parsing_size": "must be a smaller integer than {given}",
    "float_parsing": "must be a number, not {given}",
    "bool_parsing": "must be true or false, not {given}",
    "greater_than_equal": "must be at least {ge}, not {given}",
    "less_than_equal": "must be at most {le}, not {given}",
}
_OUR_PREFIX = "Value error, "


def usage_line(error: TyperException, arguments: Sequence[str], commands: Collection[str]) -> str:
    """The line for a command line that Typer refused, with the command whose help says what there is."""
    asked = arguments[0] if arguments else ""
    if asked and asked not in commands and not asked.startswith("-"):
        near = get_close_matches(asked, commands, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"there is no command {asked!r}{hint} (see 'gapless --help')"
    help_of = f"gapless {asked} --help" if asked in commands else "gapless --help"
    return f"{_refusal(error).rstrip('. ')} (see '{help_of}')"


def _refusal(error: TyperException) -> str:
    found = _first(error.__cause__)
    parameter = getattr(error, "param", None)
    if found is None or parameter is None:
        return error.format_message()
    options = [word for word in parameter.opts if word.startswith("--")]
    name = options[0] if options else str(parameter.metavar or parameter.name)
    words = _WORDS.get(str(found.get("type")))
    if words is None:
        said = str(found["msg"]).removeprefix(_OUR_PREFIX)
        return f"{name} {said}" if said.startswith("must ") else f"{name}: {said}"
    bounds = found.get("ctx")
    limits = {key: _bare(value) for key, value in bounds.items()} if isinstance(bounds, dict) else {}
    return f"{name} " + words.format(given=_bare(found.get("input")), **limits)


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
        return given.strip()
    except ValueError:
        return repr(given)
