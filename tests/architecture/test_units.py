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

#: Who keeps the rule, and the modules that convert for them.
LAYERS = ("chaos", "cluster", "loadgen", "verifier")
CONVERTERS = ("cluster.seams.units", "verifier.evidence.units")

NUMBERS = frozenset({1000, 1_000_000, 1_000_000_000, 1e-3, 1e-6, 1e-9, 60_000, 3_600_000, 2000, 500_000})
FACTORS = frozenset({"NS_PER_MS"})

#: Where a function is not good enough, and why.
INLINE = {
    "cluster.broker.handlers.produce": "for every request, where each call counts",
    "cluster.broker.metric_families": "bounds of buckets, as powers of four of a microsecond",
    "cluster.broker.node": "a figure with its fraction, once",
    "cluster.broker.replicas.timer_wheel": "for every request that waits, where each call counts",
    "cluster.broker.request_metrics": "for every request, where each call counts",
    "cluster.seams.clock": "for every moment that is asked for: it is where moments come from",
    "cluster.seams.settable_clock": "for every moment that is asked for; and a drift in parts per million",
    "cluster.seams.socket_selector": "for every turn of a client, where each call counts",
    "cluster.client.producer.producer": "for every record, where each call counts",
    "loadgen.tally": "whole arrays at once",
}


def conversions(module: Module) -> Iterator[int]:
    """The lines of a module that convert."""
    for node in nodes(module):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod):
            if _is_factor(node.left, node.right) or _is_factor(node.right, node.left):
                yield node.lineno
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod):
            if _is_factor(node.value, node.target):
                yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("divmod", "operator.mul", "operator.truediv"):
            is_two = len(node.args) == 2
            yield from [node.lineno] * (is_two and (_is_factor(*node.args) or _is_factor(*reversed(node.args))))


def _is_factor(operand: ast.expr, other: ast.expr) -> bool:
    """Whether something that may be a time is multiplied or divided by the operand to be one in another unit.

    A product of numbers is a constant, and converts nothing. Minutes are left to who shows them.
    """
    if _number(other) is not None or _named(other).endswith("_bytes"):
        return False
    if isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.Pow | ast.Mult):
        return (value := _number(operand)) is not None and value in NUMBERS
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int | float):
        return operand.value in NUMBERS
    return isinstance(operand, ast.Name) and operand.id in FACTORS


def _number(operand: ast.expr) -> float | None:
    """A number that is written as a power or product of numbers."""
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int | float):
        return operand.value
    if isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.Pow | ast.Mult):
        left, right = _number(operand.left), _number(operand.right)
        if left is not None and right is not None and abs(right) < 1e9:
            return left**right if isinstance(operand.op, ast.Pow) and abs(right) < 20 else left * right
    return None


def _named(operand: ast.expr) -> str:
    return operand.attr if isinstance(operand, ast.Attribute) else operand.id if isinstance(operand, ast.Name) else ""


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
        ("pause_s = pause_ms\npause_s /= 1000", 1),
        ("ns = ms * 10**6", 1),
        ("ms = s * 10**3", 1),
        ("ms = minutes * 60000", 1),
        ("half_s = pause_ms / 2000", 1),
        ("ms = minutes * (60 * 1000)", 1),
        ("LATE_MS = 5 * 60_000\nsize_bytes /= 1000\nsize = 2**10 * 4", 0),
        ("limit_ms = 1000\nwait(seconds_of_ms(limit_ms))\ngb = size / GB", 0),
        ("limit = 1000 - used + 1000", 0),
    ],
)
def test_a_conversion_is_found(text: str, count: int) -> None:
    """A factor counts on either side and in any notation; a constant of the same size does not."""
    assert len(list(conversions(Module("m", Path("m.py"), ast.parse(text), 1)))) == count
