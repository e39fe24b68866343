"""``gapless``: joins the commands and maps every end to an exit status. Owns no option of a command."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from chaos.commands.examples import epilog
from chaos.commands.usage import asked_command, empty_option, see_help, usage_line
from chaos.exits import BadRequest, BadUsage, Exit
from cluster.process.invocation import NAME, called
from cluster.process.one_line import guard_last_resort, printable
from cluster.process.safe_path import foreign, keep_safe

logger = logging.getLogger(__name__)

#: The most characters that are shown of a name that is too long.
MOST_SHOWN = 100

HELP = ["-h", "--help"]
PACKAGES = ("chaos", "cluster", "loadgen", "verifier")
#: Command -> the module that registers it, in the order of the help. Related commands share a module.
COMMANDS = {
    "run": "run",
    "replay": "replay",
    "shrink": "shrink",
    "sweep": "sweep",
    "verify": "verify",
    "report": "verify",
    "runs": "runs.command",
    "serve": "serve.command",
    "export": "export",
    "load": "load",
    "up": "up",
    "status": "status",
    "down": "status",
    "start": "start",
    "fault": "fault",
    "groups": "groups",
    "transactions": "transactions",
    "broker": "node",
    "proxy": "node",
    "list": "listing",
    "dump": "dump",
}


def _program(arguments: Sequence[str]) -> Any:
    """The commands: the one that is asked for, or all (for help, and for an unknown name).

    What one command imports takes another most of a second to load for nothing.
    """
    app = typer.Typer(
        name=NAME,
        help="Breaks a Kafka-like log on purpose and proves what survived.",
        rich_markup_mode="rich",
        context_settings={"help_option_names": HELP},
    )
    app.callback()(common)
    # for shell completion, the command line is in an environment variable
    words = arguments or os.environ.get("_TYPER_COMPLETE_ARGS", os.environ.get("COMP_WORDS", "")).split()[1:]
    asked = words[0] if words else ""
    for name in [COMMANDS[asked]] if asked in COMMANDS else dict.fromkeys(COMMANDS.values()):
        import_module(f"chaos.commands.{name}").register(app)
    program: Any = typer.main.get_command(app)
    for name, each in [("", program), *program.commands.items()]:
        each.epilog = epilog(name)
        for command in (each, *getattr(each, "commands", {}).values()):
            _plain_switches(command)
    return program


def _plain_switches(command: Any) -> None:
    """Keep the help from showing a type for switches, which take no value."""
    own = command.get_help_option(command.context_class(command, help_option_names=HELP))
    for option in [*command.params, own]:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"gapless {metadata.version('gapless')}")
        raise typer.Exit


def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Breaks a Kafka-like log on purpose and proves what survived."""


def run_command(arguments: Sequence[str], program: str = NAME) -> int:
    """Run one command line and return its exit status; errors become one line on stderr.

    ``program`` is how the user called us, for hints that can be pasted.
    """
    if (line := empty_option(arguments)) is not None:
        return _say(line, Exit.BAD_ARGUMENTS)
    asked: Sequence[str] = ()
    try:
        commands = _program(arguments)
        asked = asked_command(arguments, commands)
        # without arguments, show the help, which is not an error
        status = commands(list(arguments) or [HELP[-1]], prog_name=NAME, standalone_mode=False)
    except BadUsage as error:
        return _say(f"{error}{see_help(program, *asked)}", Exit.BAD_ARGUMENTS)
    except BadRequest as error:
        return _say(str(error), Exit.BAD_ARGUMENTS)
    except TyperException as error:
        return _say(usage_line(error, arguments, asked, COMMANDS, program), Exit.BAD_ARGUMENTS)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", Exit.INTERRUPTED)
    except Exception as error:
        if (line := _too_long(error)) is not None:
            return _say(line, Exit.BAD_ARGUMENTS)
        logger.exception("the harness failed")
        return _say(f"the harness itself failed: {type(error).__name__}: {error}{_log()}", Exit.HARNESS_FAILED)
    return status if isinstance(status, int) else Exit.VALID


def _too_long(error: Exception) -> str | None:
    """The line for a given name that is too long for a file or host; None for any other error."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = str(error.filename)
        return f"{name[:MOST_SHOWN]}{'...' if len(name) > MOST_SHOWN else ''}: this name is too long for a file"
    if isinstance(error, UnicodeError) and "idna" in str(error):
        return "the name of a host that was given is not one that a host can have: a part of it is empty or too long"
    return None


def _say(text: str, status: Exit) -> int:
    # One line, whatever a library put into its message (YAML's have five).
    print(f"gapless: {printable(' '.join(text.split()))}", file=sys.stderr)
    return int(status)


def _log() -> str:
    """The hint where to find details; "" if nothing is logged to a file."""
    files = [each.baseFilename for each in logging.getLogger().handlers if isinstance(each, logging.FileHandler)]
    return f"; see {files[0]}" if files else ""


def main() -> None:
    """The console script."""
    keep_safe()
    guard_last_resort()
    if (package := foreign(PACKAGES)) is not None:
        fix = "install gapless into a virtual environment of its own"
        sys.exit(_say(f"the package {package} is not gapless's own; {fix}", Exit.BAD_ARGUMENTS))
    sys.exit(run_command(sys.argv[1:], called("chaos.commands.main")))


if __name__ == "__main__":
    main()
