"""Callbacks are passed at construction: who is called does not change later, and no method is replaced by another.

Owns what counts as assigning one later: a lambda, or an attribute named like a callback, outside of ``__init__``; a
function or method that becomes an attribute of another object, by assignment or by ``setattr``; and what replaces an
attribute of an imported module or of a class. Does not own what a method does with a callback that it was given for
one call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import Module, modules, nodes

#: Where one is assigned later nevertheless, and why.
LEFT = {
    "cluster.client.consumer.group.participation": "the program gives its listener with each subscription, as in Kafka",
    "cluster.seams.asyncio_connection": "what accepts a connection is given it, and returns who handles its frames",
    "cluster.seams.memory_connection": "what accepts a connection is given it, and returns who handles its frames",
    "loadgen.locustfile": "Locust reads the number of users of a class from that class",
    "loadgen.users.program": "Locust takes no class for its parser; it is replaced once, before Locust starts",
    "verifier.spark.session": "PySpark and tempfile have globals, which are set for a session and taken back after it",
    "cluster.seams.memory_selector": "a circle is cut: it is polled by the one that it tells of its events",
    "cluster.seams.out_of_memory": "Python's hooks for what no caller sees are globals, set once as a process begins",
    "loadgen.users.whole_csv": "Locust takes no class for its CSV files; it is replaced once, before Locust starts",
}

_CALLBACK = re.compile(r"_*(on_\w+|\w*callback|\w*hook|\w*handler|\w*listener)")
_BUILT_IN = frozenset({"print", "len", "repr", "str", "list", "next", "iter", "min", "max", "open"})


def assigned_later(module: Module) -> Iterator[int]:
    """The lines on which a callback is assigned to an object that exists already."""
    yield from sorted({*_assigned_later(module)})


def _assigned_later(module: Module) -> Iterator[int]:
    begun = set()
    imported = {*_imported(module)}
    classes = {node.name for node in nodes(module) if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in module.tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__post_init__"):
            begun |= {id(each) for each in ast.walk(node)}
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            names = {each.name for each in methods}
            called = {each.name for each in methods if not each.decorator_list}
            for target, value in _assignments(ast.walk(node)):
                is_replaced = _is_self(target.value) and target.attr in names
                is_given_away = not _is_self(target.value) and _is_own(value, called)
                if is_replaced or is_given_away:
                    yield target.lineno
        if isinstance(node, ast.Call) and (late := _set_late(node)) is not None:
            yield late
    for target, value in _assignments(nodes(module)):
        is_callback = isinstance(value, ast.Lambda) or _CALLBACK.fullmatch(target.attr) is not None
        if is_callback and not _is_nothing(value) and not (id(target) in begun and _is_self(target.value)):
            yield target.lineno
        owner = target.value.id if isinstance(target.value, ast.Name) else ""
        if owner in imported or owner in classes:
            yield target.lineno
        is_function = isinstance(value, ast.Name) and value.id in functions | _BUILT_IN
        if is_function and not (id(target) in begun and _is_self(target.value)):
            yield target.lineno


def _imported(module: Module) -> Iterator[str]:
    """The names of imported modules and classes, as far as their spelling shows it: no one assigns to their parts."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _assignments(found: Iterator[ast.AST] | tuple[ast.AST, ...]) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    """Each attribute that is assigned, with its value; those of a tuple one by one."""
    for node in found:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    if isinstance(target, ast.Attribute):
        yield target, value
    elif isinstance(target, ast.Tuple | ast.List):
        packed = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if packed else [None] * len(target.elts)
        for each, its in zip(target.elts, values, strict=True):
            yield from _pairs(each, its)


def _set_late(call: ast.Call) -> int | None:
    """``setattr`` with a literal name is an assignment in disguise, unless a frozen object sets its own attribute."""
    if ast.unparse(call.func) == "setattr" and len(call.args) == 3:
        name, value = call.args[1:]
        callable_ = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in _BUILT_IN)
        is_named = isinstance(name, ast.Constant) and _CALLBACK.fullmatch(str(name.value))
        if callable_ or is_named or (isinstance(value, ast.Attribute) and _is_self(value.value)):
            return call.lineno
    return None


def _is_nothing(value: ast.expr | None) -> bool:
    """Forgetting a callback at the end is not assigning one."""
    return isinstance(value, ast.Constant) and value.value is None


def _is_own(value: ast.expr | None, methods: set[str]) -> bool:
    return isinstance(value, ast.Attribute) and _is_self(value.value) and value.attr in methods


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


def test_callbacks_are_passed_at_construction() -> None:
    """No module but those that are named assigns one later."""
    found = {module.name: [*assigned_later(module)] for module in modules()}
    assert {name: lines for name, lines in found.items() if lines and name not in LEFT} == {}
    assert [name for name in LEFT if not found[name]] == []
    assert all(LEFT.values())


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
        ("x.callback = f", 1),
        ("x.error_handler = f", 1),
        ("log.append = print", 1),
        ("def f(): ...\nlog.write = f", 1),
        ('setattr(log, "append", print)', 1),
        ('class A:\n    def b(self):\n        setattr(log, "told", self.hear)', 1),
        ("import logging\nlogging.Handler = Ours", 1),
        ("from locust import stats\nstats.Writer = Ours", 1),
        ("class A:\n    def b(self): ...\nA.b = other", 1),
        ("x.on_end, x.key = f, 1", 1),
        ("(x.key, [y.on_end]) = given", 1),
        ("def attach(self, cb):\n    self._callback = cb", 1),
        ("x.on_end = None\nself.total = total", 0),
        ("class A:\n    def __init__(self, log):\n        log.told = self.hear\n    def hear(self): ...", 1),
    ],
)
def test_a_callback_that_is_assigned_later_is_found(text: str, count: int) -> None:
    """In a constructor an object may take its own; another's never."""
    assert len(list(assigned_later(Module("m", Path("m.py"), ast.parse(text), 1)))) == count
