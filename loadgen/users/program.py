"""Locust without stray settings: ``python -m loadgen.users.program`` takes the options of ``locust``.

By default, Locust obeys ``~/.locust.conf``, and ``locust.conf`` and ``pyproject.toml`` of the current directory, which
others may have written: a setting there may name files to write. Here only ``--config FILE`` is obeyed.
"""

from __future__ import annotations

from typing import Any

from locust import argument_parser, main


class _ProgramParser(argument_parser.LocustArgumentParser):  # type: ignore[misc]
    """Locust's parser, without default configuration files."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **{**named, "default_config_files": []})


def run() -> None:
    """Run Locust with this parser."""
    argument_parser.LocustArgumentParser = _ProgramParser
    main.main()


if __name__ == "__main__":
    run()
