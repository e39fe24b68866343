"""What runs leave in their directories is known to who removes them: every name is found in the code, by its form.

A name is a property of ``RunDirectory``, or stands beside the path of one: ``directory.path / "proxy.log"``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

import pytest

from chaos.commands.runs.pruning import OF_A_RUN
from chaos.conductor.leftovers import FILE
from tests.architecture.sources import Module, modules, nodes, within
from verifier.evidence import outputs, seal
from verifier.evidence.run_directory import RunDirectory

#: Whose ``path`` is a directory of another kind: of a sweep, of a search, of a history of operations.
OF_OTHERS = (
    *("chaos.sweeps", "chaos.shrinking", "chaos.commands.sweep", "chaos.commands.shrink", "chaos.commands.serve"),
    "verifier.operations",
)


def named() -> set[str]:
    """The names that ``RunDirectory`` gives, and those of what is written beside the evidence."""
    run = RunDirectory(Path("/run"))
    properties = [name for name, value in vars(RunDirectory).items() if isinstance(value, property)]
    paths = [Path(getattr(run, name)) for name in properties]
    within_run = {path.relative_to(run.path).parts[0] for path in paths}
    return within_run | {FILE, *outputs.FILES, *outputs.DIRECTORIES, *seal.OUTPUTS, *seal.OUTPUT_DIRECTORIES}


def beside(judged: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """Every name that is appended to a ``.path``, with the module that does it."""
    for module in judged:
        if any(within(module.name, each) for each in OF_OTHERS):
            continue
        for node in nodes(module):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                is_of_run = isinstance(node.left, ast.Attribute) and node.left.attr == "path"
                if is_of_run and (name := _value(module, node.right)) is not None:
                    yield name, module.name


def _value(module: Module, node: ast.expr) -> str | None:
    """A name as it is written, or a constant of the module or one that it imports; None for what is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and node.id.isupper():
        return str(getattr(import_module(module.name), node.id))
    return None


def is_known(name: str) -> bool:
    return any(fnmatchcase(name, each) for each in OF_A_RUN)


def test_all_that_a_run_leaves_may_be_pruned() -> None:
    """A run is removed only if it holds nothing else; a forgotten name would keep every run that has it."""
    found = dict.fromkeys(named(), "RunDirectory") | dict(beside(modules("chaos", "verifier", "loadgen")))
    assert {name: where for name, where in found.items() if not is_known(name)} == {}
    assert {"relays.log", "proxy.log", "stable_offsets.jsonl", "reached.json", "warden.log"} < set(found)


def test_no_name_is_known_that_nothing_leaves() -> None:
    """A name without a writer would let a file of someone's be removed."""
    found = named() | {name for name, _ in beside(modules("chaos", "verifier", "loadgen"))}
    assert [name for name in OF_A_RUN if name != ".*" and name not in found] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("log = str(self._directory.path / 'other.log')", ["other.log"]),
        ("x = directory.path / f'{name}.log'", []),
        ("x = base / 'index.html'", []),
        ("x = run.path.parent / 'sweep.json'", []),
    ],
)
def test_a_name_beside_a_path_is_found(text: str, names: list[str]) -> None:
    """Only literal names of files directly in the run's directory are found, not computed ones."""
    module = Module("chaos.x", Path("x.py"), ast.parse(text), 1)
    assert [name for name, _ in beside([module])] == names
