"""``docs/load-options.md``, made from the options: ``python -m loadgen.users.document > docs/load-options.md``."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from loadgen.users.command_line import add_options, destination

_HEAD = """# Options of a standalone load

`gapless load` and `locust -f loadgen/locustfile.py` take these options in addition to those of Locust. You can also set
each option as an environment variable, or without the dashes in a Locust configuration file that you name with
`--config FILE`. `gapless load` reads no other configuration file; plain `locust` also obeys `~/.locust.conf`, and
`locust.conf` and `pyproject.toml` of the current directory. [load.md](load.md) explains how to use the options
together. Defaults are in parentheses. Locust's web form has the topic, partitions, replication factor, rate, value
bytes, client, flush timeout, workload, and producer and consumer configuration (with Kafka's or librdkafka's keys)
under "Custom parameters".

| Option | Variable | Description |
| --- | --- | --- |
"""


class _RequestRows:
    """Replaces Locust's parser, and collects the options that are added to it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add_argument_group(self, _title: str) -> _RequestRows:
        return self

    def add_argument(self, option: str, **given: Any) -> SimpleNamespace:
        value = given.get("metavar") or given.get("type", str).__name__.upper().strip("_").replace("STR", "TEXT")
        shown = f"{option} {value}".replace("|", "\\|")
        self.lines.append(
            f"| `{shown}` | `{given['env_var']}` | {given['help']} |"
            if "env_var" in given
            else f"| `{shown}` | | {given['help']} |"
        )
        return SimpleNamespace(dest=destination(option))


def document() -> str:
    """The whole page."""
    rows = _RequestRows()
    add_options(rows)
    return _HEAD + "\n".join(rows.lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
