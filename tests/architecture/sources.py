"""The project's source as data: its modules, parsed, and what they import. Shared by the tests of this directory."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.lasting import lasting

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cluster", "loadgen", "chaos", "verifier")
#: What loads a module by its name.
LOADERS = ("import_module", "__import__", "find_spec", "run_module")
#: Never part of the project, wherever they lie.
SKIPPED = frozenset(
    {".git", ".venv", "build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
)


@dataclass(frozen=True, eq=False)
class Module:
    """One module: its dotted name, its file, its parsed text."""

    name: str
    path: Path
    tree: ast.Module
    lines: int

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Import:
    """One imported thing: by whom, what (a dotted name, as precise as the statement says), where."""

    module: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


@cache
def modules(*packages: str) -> tuple[Module, ...]:
    """All modules of these top-level packages (of all four if none is named), sorted by name."""
    return tuple(module for package in packages or PACKAGES for module in _modules(package))


@cache
def _modules(package: str) -> tuple[Module, ...]:
    found = []
    with lasting():
        for path in sorted((ROOT / package).rglob("*.py")):
            if SKIPPED.isdisjoint(path.parts):
                text = path.read_text(encoding="utf-8")
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                found.append(Module(name, path, ast.parse(text), len(text.splitlines())))
    return tuple(found)


@cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """Every node of a module's text, from the outside to the inside."""
    return tuple(ast.walk(module.tree))


@cache
def known_names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


@cache
def imports(module: Module, *, run_time_only: bool = False) -> tuple[Import, ...]:
    """Every import of a module, inside functions too. ``from a import b`` is ``a.b`` where that is a module of ours.

    With ``run_time_only`` those under ``if TYPE_CHECKING`` are left out.
    """
    return tuple(_imports(module, run_time_only))


def _imports(module: Module, run_time_only: bool) -> Iterator[Import]:
    for node in _unguarded(module.tree) if run_time_only else nodes(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module.name, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(module.name, inner if inner in known_names() else base, node.lineno)
        elif isinstance(node, ast.Call) and (target := loaded(node)):
            yield Import(module.name, target, node.lineno)


def loaded(call: ast.Call) -> str | None:
    """The module that a call loads by its name, where that is written out: ``import_module("time")``."""
    if ast.unparse(call.func).rpartition(".")[2] in LOADERS and call.args:
        name = call.args[0]
        return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
    return None


def _unguarded(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement but those under ``if TYPE_CHECKING``."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and _is_for_types(node.test)):
            yield node
            left += (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _is_for_types(test: ast.expr) -> bool:
    return any("TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", "")) for node in ast.walk(test))


def within(name: str, room: str) -> bool:
    """Whether a dotted name is the room or lies in it."""
    return name == room or name.startswith(room + ".")


@cache
def committed_files() -> tuple[Path, ...]:
    """Every file that belongs to the project: what lies in the tree and is neither made, installed nor a result."""
    found = []
    for directory, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in SKIPPED and not name.endswith(".egg-info")]
        for path in (Path(directory, name) for name in names):
            parts = path.relative_to(ROOT).parts
            result = parts[0] == "results" and parts[1:] not in (("README.md",), (".gitignore",))
            if path.is_file() and path.name not in SKIPPED and not result and not path.name.endswith(".pyc"):
                found.append(path)
    return tuple(sorted(found))
