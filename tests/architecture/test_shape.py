"""Sizes and first lines: one concept a module, one page a function."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import modules, nodes

LONGEST_MODULE = 300
LONGEST_FUNCTION = 69
#: The fewest characters of a test's docstring.
SHORTEST_RULE = 25

#: Modules that are longer, how long at most, and why.
LONG_MODULES: dict[str, tuple[int, str]] = {
    "cluster.broker.node": (340, "the wiring of one broker, and the order in which it starts and stops"),
    "cluster.broker.replicas.replica": (350, "one replica's face towards requests, roles and settings"),
    "cluster.seams.asyncio_connection": (370, "one socket: reading, sending, pausing and ending share its state"),
    "cluster.log.partition_log": (485, "the one face of a replica's log; the work is in the modules beside it"),
    "cluster.log.segment": (390, "one file with its indexes: lookups, appends and cuts share their positions"),
    "verifier.evidence.history": (340, "one file form: its columns, its writer, its reader"),
}
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


def test_exceptions_are_needed() -> None:
    """An exception for something that has become short is removed."""
    lines = {module.name: module.lines for module in modules()}
    assert [name for name in LONG_MODULES if lines.get(name, 0) <= LONGEST_MODULE] == []
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
