"""Time changes its unit in one place per layer (docs/design.md "Units"), never inline.

Owns what counts as a conversion: a product, quotient or remainder with 1000, a million or a billion, or with one of the
factors of the modules that convert. What is no time (bytes, probabilities) names its factor and does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import Module, modules, nodes, within

#: The layers that keep the rule, and the modules that convert for them.
LAYERS = ("chaos", "loadgen", "verifier", "cluster.client", "cluster.process")
CONVERTERS = ("cluster.seams.units", "verifier.evidence.units")

NUMBERS = frozenset({1000, 1_000_000, 1_000_000_000, 1e-3, 1e-6, 1e-9})
FACTORS = frozenset({"NS_PER_MS"})

#: Where a function is not good enough, and why.
INLINE = {
    "cluster.client.producer.producer": "for every record, where each call counts",
    "loadgen.tally": "whole arrays at once",
}


def conversions(module: Module) -> Iterator[int]:
    """The lines of a module that convert."""
    for node in nodes(module):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod):
            if _is_factor(node.left) or _is_factor(node.right):
                yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "divmod" and any(map(_is_factor, node.args)):
            yield node.lineno


def _is_factor(operand: ast.expr) -> bool:
    if isinstance(operand, ast.Constant):
        return isinstance(operand.value, int | float) and operand.value in NUMBERS
    return isinstance(operand, ast.Name) and operand.id in FACTORS


def judged() -> list[Module]:
    return [
        module
        for module in modules()
        if any(within(module.name, layer) for layer in LAYERS) and module.name not in CONVERTERS
    ]


def test_time_is_converted_by_name() -> None:
    """No layer multiplies or divides by what is between two units of time."""
    found = [
        f"{module.name}:{line}" for module in judged() if module.name not in INLINE for line in conversions(module)
    ]
    assert found == []


def test_every_exception_is_needed() -> None:
    """An exception that converts nothing goes, and each has its reason."""
    by_name = {module.name: module for module in judged()}
    assert all(INLINE.values())
    assert [name for name in INLINE if name not in by_name or not list(conversions(by_name[name]))] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("wait(timeout_ms / 1000)", 1),
        ("deadline = now + int(s * 1e9)", 1),
        ("x = 1_000 * s // 1_000_000", 2),
        ("divmod(ns, 1_000_000_000)", 1),
        ("ms = ns // NS_PER_MS", 1),
        ("limit_ms = 1000\nwait(seconds_of_ms(limit_ms))\ngb = size / GB", 0),
        ("limit = 1000 - used + 1000", 0),
    ],
)
def test_a_conversion_is_found(text: str, count: int) -> None:
    """A factor counts on either side and in any notation; a constant of the same size does not."""
    assert len(list(conversions(Module("m", Path("m.py"), ast.parse(text), 1)))) == count
