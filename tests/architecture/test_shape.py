"""Sizes and first lines: one concept a module, one page a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.sources import Module, modules, nodes

LONGEST_MODULE = 300
LONGEST_FUNCTION = 69
#: The fewest characters of a test's docstring.
SHORTEST_RULE = 25

#: Modules that are longer, how long at most, and why.
LONG_MODULES: dict[str, tuple[int, str]] = {
    "chaos.experiment.asked": (317, "every option of a run, each declared once"),
    "cluster.broker.node": (341, "the wiring of one broker, and the order in which it starts and stops"),
    "cluster.broker.replicas.replica": (358, "one replica's face towards requests, roles and settings"),
    "cluster.seams.asyncio_connection": (375, "one socket: reading, sending, pausing and ending share its state"),
    "cluster.log.partition_log": (478, "the one face of a replica's log; the work is in the modules beside it"),
    "cluster.log.segment": (389, "one file with its indexes: lookups, appends and cuts share their positions"),
    "verifier.evidence.history": (334, "one file form: its columns, its writer, its reader"),
}
#: How much longer such a module may become before someone looks at it again.
SLACK = 3
#: Functions that are longer, how long at most, and why.
LONG_FUNCTIONS: dict[str, tuple[int, str]] = {}


def test_modules_are_short() -> None:
    """A module is one concept; what is longer has a reason, and no more room than it needs."""
    wrong = [
        f"{module.name} has {module.lines} lines"
        for module in modules()
        if module.lines > LONG_MODULES.get(module.name, (LONGEST_MODULE, ""))[0]
    ]
    assert not wrong, "\n".join(wrong)


def test_functions_are_short() -> None:
    """A function fits on a page, or is in the table with its reason."""
    wrong = []
    for module in modules():
        for node in nodes(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module.name}.{node.name}"
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONG_FUNCTIONS.get(name, (LONGEST_FUNCTION, ""))[0]:
                    wrong.append(f"{name} has {length} lines")
    assert not wrong, "\n".join(wrong)


def loose(limits: Mapping[str, tuple[int, str]], lines: Mapping[str, int]) -> list[str]:
    """The exceptions that are not needed, or that allow more than is needed."""
    found = {name: lines.get(name, 0) for name in limits}
    return [name for name, there in found.items() if there <= LONGEST_MODULE or limits[name][0] - there > SLACK]


def test_exceptions_are_needed() -> None:
    """An exception for something that has become short is removed, and a limit with slack is lowered."""
    assert loose(LONG_MODULES, {module.name: module.lines for module in modules()}) == []
    assert all(reason for _limit, reason in [*LONG_MODULES.values(), *LONG_FUNCTIONS.values()])


def test_every_module_says_what_it_owns() -> None:
    """Every module opens with a docstring, and from __future__ import annotations follows."""
    undocumented = [module.name for module in modules() if len(ast.get_docstring(module.tree) or "") < 20]
    assert undocumented == []
    old = [
        module.name
        for module in modules()
        if any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AnnAssign) for node in nodes(module))
        and not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in module.tree.body[:2])
    ]
    assert old == []


def test_operating_errors_are_not_asserted() -> None:
    """assert is for tests: in the product it vanishes with -O and says nothing to a user."""
    found = [
        f"{module.name}:{node.lineno}" for module in modules() for node in nodes(module) if isinstance(node, ast.Assert)
    ]
    assert found == []


def test_every_test_states_its_rule() -> None:
    """A test begins with a docstring that says what must hold: a sentence, and not the rest of the function's name."""
    silent = [
        f"{module.name}.{node.name}: {rule!r}"
        for module in modules("tests")
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if len(rule := rule_of(node)) < SHORTEST_RULE
    ]
    assert not silent, f"at least {SHORTEST_RULE} characters, a sentence that can be read alone:\n" + "\n".join(silent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a(): ...", ""),
        ('def test_a():\n    """Is refused."""', "Is refused."),
        (
            'def test_a():\n    """A range that ends\n    before it begins is refused.\n\n    More."""',
            "A range that ends before it begins is refused.",
        ),
    ],
)
def test_a_rule_is_the_first_paragraph(text: str, expected: str) -> None:
    """What comes after a blank line does not count, nor how the first paragraph is broken into lines."""
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    assert rule_of(node) == expected


def rule_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The first paragraph of a test's docstring, as one line; empty if it has none."""
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


def test_a_loose_limit_is_found() -> None:
    """A limit may be a little above what is there; an exception for a short module may not be."""
    limits = {
        "tight": (320, ""),
        "near": (320 + SLACK, ""),
        "slack": (321 + SLACK, ""),
        "short": (302, ""),
        "gone": (1, ""),
    }
    lines = {"tight": 320, "near": 320, "slack": 320, "short": 300}
    assert loose(limits, lines) == ["slack", "short", "gone"]


#: Values that one statement may give to as many names. Constants and the columns of a table may be more.
MOST_AT_ONCE = 3
#: Where more are given, and why.
PACKED = {
    "cluster.client.producer.packed_records": "for every record, where each statement counts",
    "verifier.operations.checks.sequences": "parallel columns, reordered together",
    "verifier.segments.records": "parallel columns, reordered together",
}


def packed(module: Module) -> Iterator[int]:
    """The lines of assignments that save lines: several values to several names, which have nothing to do with it."""
    for node in nodes(module):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and len(target.elts) > MOST_AT_ONCE and not _are_constants(target):
                    yield node.lineno
        if isinstance(node, ast.stmt) and (body := getattr(node, "body", None)) and isinstance(body, list):
            yield from (later.lineno for one, later in pairwise(body) if one.lineno == later.lineno)


def _are_constants(target: ast.Tuple) -> bool:
    return all(isinstance(each, ast.Name) and each.id.lstrip("_").isupper() for each in target.elts)


def test_no_lines_are_saved_by_packing() -> None:
    """Nobody gets under the limit by putting several statements into one."""
    found = {module.name: list(packed(module)) for module in modules()}
    assert {name: lines for name, lines in found.items() if lines and name not in PACKED} == {}
    assert [name for name in PACKED if not found[name]] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a, b, c, d = 1, 2, 3, 4", 1),
        ("(a, b, self.c, d) = (1, 2, 3, 4)", 1),
        ("def f():\n    a = 1; b = 2", 1),
        ("a, b = b, a\nA, B, C, D = 1, 2, 3, 4\na, b, c, d = f()", 0),
    ],
)
def test_packing_is_found(text: str, count: int) -> None:
    """A swap, a list of constants and what one call returns are no packing."""
    assert len(list(packed(Module("m", Path("m.py"), ast.parse(text), 1)))) == count


#: How often each package names ``Any``. It may only shrink: a new one is typed, or another one goes.
MOST_ANY = {
    "chaos": 9,
    "chaos.commands": 43,
    "chaos.conductor": 28,
    "chaos.experiment": 38,
    "chaos.faults": 35,
    "chaos.links": 17,
    "chaos.proxy": 2,
    "chaos.replay": 10,
    "chaos.rewriting": 8,
    "chaos.scenarios": 3,
    "chaos.schedules": 4,
    "chaos.shrinking": 14,
    "chaos.sweeps": 14,
    "cluster": 4,
    "cluster.broker": 47,
    "cluster.client": 26,
    "cluster.config": 3,
    "cluster.log": 10,
    "cluster.metadata": 25,
    "cluster.process": 19,
    "cluster.protocol": 37,
    "cluster.seams": 24,
    "loadgen": 34,
    "loadgen.clients": 14,
    "loadgen.members": 4,
    "loadgen.users": 37,
    "loadgen.web": 3,
    "verifier": 29,
    "verifier.accounts": 5,
    "verifier.checks": 2,
    "verifier.closing": 1,
    "verifier.completeness": 7,
    "verifier.evidence": 38,
    "verifier.explain": 5,
    "verifier.figures": 12,
    "verifier.files": 2,
    "verifier.groups": 4,
    "verifier.operations": 78,
    "verifier.report": 35,
    "verifier.segments": 3,
    "verifier.spark": 12,
    "verifier.surroundings": 7,
    "verifier.suspects": 6,
    "verifier.telling": 12,
    "verifier.transactions": 12,
    "verifier.witness": 6,
}
#: So many may go before the number is lowered.
ANY_SLACK = 5


def any_count(module: Module) -> int:
    """How often ``Any`` stands in annotations, aliases and casts, by whatever name it was imported."""
    names = {"Any"}
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            names |= {alias.asname for alias in node.names if alias.name == "Any" and alias.asname}
    return sum(
        (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr == "Any" and ast.unparse(node.value) in ("typing", "t"))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names)
        for node in nodes(module)
    )


def test_any_does_not_spread() -> None:
    """No package has more of it than it had; and a package that has less has its number lowered."""
    now = {
        package: sum(any_count(module) for module in modules() if _package(module.name) == package)
        for package in sorted({_package(module.name) for module in modules()})
    }
    most = dict.fromkeys(now, 0) | MOST_ANY
    assert {package: count for package, count in now.items() if count > most[package]} == {}
    assert [package for package in MOST_ANY if most[package] - now.get(package, 0) > ANY_SLACK] == []


def _package(name: str) -> str:
    """Two parts of a name where a directory has them, one for what lies directly in a top-level package."""
    top, _, rest = name.partition(".")
    part = rest.partition(".")[0]
    return f"{top}.{part}" if part in _parts(top) else top


@cache
def _parts(top: str) -> frozenset[str]:
    return frozenset(
        module.name.split(".")[1] for module in modules(top) if len(module.name.split(".")) > 1 and _is_inside(module)
    )


def _is_inside(module: Module) -> bool:
    return len(module.name.split(".")) > 2 or module.path.name == "__init__.py"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(x: Any) -> dict[str, Any]: ...", 2),
        ("import typing\nx: typing.Any", 1),
        ("from typing import Any as Whatever\nx: Whatever", 1),
        ('x: "Any"', 1),
        ("any(x)", 0),
    ],
)
def test_any_is_counted(text: str, count: int) -> None:
    """In whatever form it is named."""
    assert any_count(Module("m", Path("m.py"), ast.parse(text), 1)) == count
