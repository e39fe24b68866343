"""Callbacks are passed at construction: who is called does not change later, and no method is replaced by another.

Owns what counts as assigning one later: a lambda or an ``on_...`` attribute outside of ``__init__``, a method of the
class itself, and one that becomes an attribute of another object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import Module, modules, nodes, within

#: In the simulated selector a circle is cut: it is polled by the one that it tells of its events.
LEFT = ("cluster.seams.memory_selector",)


def assigned_later(module: Module) -> Iterator[int]:
    """The lines on which a callback is assigned to an object that exists already."""
    begun = set()
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__post_init__"):
            begun |= {id(each) for each in ast.walk(node)}
        if isinstance(node, ast.ClassDef):
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            methods = {each.name for each in functions}
            called = {each.name for each in functions if not each.decorator_list}
            for target, value in _assignments(ast.walk(node)):
                is_replaced = _is_self(target.value) and target.attr in methods
                is_given_away = not _is_self(target.value) and _is_own(value, called)
                if is_replaced or is_given_away:
                    yield target.lineno
    for target, value in _assignments(nodes(module)):
        is_callback = isinstance(value, ast.Lambda) or target.attr.lstrip("_").startswith("on_")
        if is_callback and not (id(target) in begun and _is_self(target.value)):
            yield target.lineno


def _assignments(found: Iterator[ast.AST] | tuple[ast.AST, ...]) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    for node in found:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute):
                    yield target, node.value


def _is_own(value: ast.expr | None, methods: set[str]) -> bool:
    return isinstance(value, ast.Attribute) and _is_self(value.value) and value.attr in methods


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


def test_callbacks_are_passed_at_construction() -> None:
    """No module but the one that is named assigns one later."""
    judged = [module for module in modules() if not any(within(module.name, room) for room in LEFT)]
    assert [f"{module.name}:{line}" for module in judged for line in assigned_later(module)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("recorder.backlog = lambda: 0", 1),
        ("self.log.on_change = self.write", 1),
        ("class A:\n    def b(self): ...\n    def c(self):\n        self.b = print", 1),
        (
            "class A:\n    def __init__(self, on_end):\n        self._on_end = on_end\n        self._key = lambda x: x",
            0,
        ),
        ("class A:\n    def __init__(self, log):\n        log.on_change = self.write", 1),
        ("class A:\n    def begin(self):\n        self._task = begin()", 0),
        ("class A:\n    def __init__(self, log):\n        log.told = self.hear\n    def hear(self): ...", 1),
    ],
)
def test_a_callback_that_is_assigned_later_is_found(text: str, count: int) -> None:
    """In a constructor an object may take its own; another's never."""
    assert len(list(assigned_later(Module("m", Path("m.py"), ast.parse(text), 1)))) == count
