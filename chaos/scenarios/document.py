"""``docs/scenarios.md``, made of the scenarios. Run as ``python -m chaos.scenarios.document > docs/scenarios.md``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.scenarios.catalogue import scenarios
from chaos.scenarios.model import Scenario

_WIDTH = 120

HEAD = """# Scenarios

A scenario is a schedule with the settings and the load that it needs: something that went wrong in a real system, told
as what a correct cluster must survive. `gapless list scenarios` lists them, and `--scenario` plays one:

```
.venv/bin/gapless run --scenario kip-101-truncate-to-watermark
.venv/bin/gapless run --scenario zombie-leader --client native --seed 7
```

Other options win over the scenario's. The seed, which is drawn unless you give it, decides what the scenario leaves
open. `gapless sweep scenarios` plays all of them. With a planted defect of the kind that the story tells (`--defect`,
`gapless list defects`), the run should be invalid.

The files are `chaos/scenarios/*.yaml`, and their form is in `chaos/scenarios/model.py`. This page is made of them:
`.venv/bin/python -m chaos.scenarios.document > docs/scenarios.md`.
"""


def document() -> str:
    """The page as text."""
    return "\n".join([HEAD, *_table(), "", *(line for each in scenarios() for line in _section(each))])


def _table() -> Iterator[str]:
    yield "| Scenario | What |"
    yield "|---|---|"
    for each in scenarios():
        yield f"| [`{each.name}`](#{each.name}) | {each.title} |"


def _section(scenario: Scenario) -> Iterator[str]:
    yield f"## {scenario.name}"
    yield ""
    yield from _wrapped(f"{scenario.title}. Source: {scenario.source}.")
    yield ""
    yield from _wrapped(scenario.story)
    yield ""
    for word, text in (("Needs", scenario.needs), ("A correct cluster", scenario.shows)):
        yield from _wrapped(f"- **{word}**: {text}", indent="  ")
    if scenario.allowed:
        allowed = ", ".join(f"`{name}`" for name in scenario.allowed)
        yield from _wrapped(f"- **Allowed by the settings**: {allowed}", indent="  ")
    yield from _wrapped(f"- **Options**: {_options(scenario.options)}", indent="  ")
    yield ""
    yield "```yaml"
    for each in scenario.schedule.injections:
        more = {"target": each.target, "parameters": each.parameters}
        told = "".join(f", {name}: {_plain(value)}" for name, value in more.items() if value)
        overlap = ", overlap: true" if each.overlap else ""
        yield f"- {{at_s: {each.at_s:g}, fault: {each.fault}, duration_s: {each.duration_s:g}{told}{overlap}}}"
    yield "```"
    yield ""


def _options(options: Mapping[str, Any]) -> str:
    told = []
    for name, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        told += [f"`--{name.removesuffix('_s').replace('_', '-')} {each}`" for each in values]
    return ", ".join(told) or "none"


def _plain(mapping: Mapping[str, Any]) -> str:
    entries = (f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in mapping.items())
    return "{" + ", ".join(entries) + "}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(document())
