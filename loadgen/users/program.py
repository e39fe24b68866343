"""Locust without the settings that lie about: ``python -m loadgen.users.program`` takes the options of ``locust``.

By itself Locust obeys ``~/.locust.conf``, and ``locust.conf`` and ``pyproject.toml`` of the current directory, which
others may have filled: a setting there may name files to write. ``--config FILE`` is obeyed: it was asked for.
"""

from __future__ import annotations

from typing import Any

from locust import argument_parser, main


class _Parser(argument_parser.LocustArgumentParser):  # type: ignore[misc]
    """Locust's, with no file that no one named."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **{**named, "default_config_files": []})


def run() -> None:
    """Be Locust."""
    argument_parser.LocustArgumentParser = _Parser
    main.main()


if __name__ == "__main__":
    run()
