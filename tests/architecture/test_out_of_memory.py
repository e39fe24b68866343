"""No code of a broker swallows ``MemoryError``: what catches every exception raises it again, or halts the broker."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import ROOT

#: Rooms whose code runs in a broker.
ROOMS = ("broker", "controller", "coordinator", "defects", "log", "metadata", "protocol", "replication", "seams")
#: For simulations alone.
IN_MEMORY = ("memory_",)
CATCH_ALL = {"Exception", "BaseException", "MemoryError"}
HALT = "halt_if_out_of_memory"


def swallowing(source: str) -> Iterator[int]:
    """The lines of the handlers in it that keep a ``MemoryError`` to themselves."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and _names(node.type) & CATCH_ALL and not _passes_on(node):
            yield node.lineno
        if isinstance(node, ast.Call) and "suppress" in (getattr(node.func, "attr", ""), getattr(node.func, "id", "")):
            yield from (node.lineno for each in node.args if _names(each) & CATCH_ALL)


def _names(caught: ast.expr | None) -> set[str]:
    if caught is None:
        return {"BaseException"}
    return {node.id for node in ast.walk(caught) if isinstance(node, ast.Name)}


def _passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether its first statement has the broker halt, or its last one raises again."""
    first, last = handler.body[0], handler.body[-1]
    called = first.value.func if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) else None
    return isinstance(last, ast.Raise) or getattr(called, "id", "") in ("_halt", HALT)


def test_brokers_swallow_no_memory_error() -> None:
    """A broker that went on after one might acknowledge what it does not have (``cluster.seams.out_of_memory``)."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted(Path(ROOT, "cluster", room).rglob("*.py"))
        if not path.name.startswith(IN_MEMORY)
        for line in swallowing(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_what_swallows_it_is_found() -> None:
    """And what raises it again, has the broker halt, or catches something else, is not."""
    assert [*swallowing("try:\n  a()\nexcept Exception:\n  log()\n")] == [3]
    assert [*swallowing("try:\n  a()\nexcept:\n  log()\n")] == [3]
    assert [*swallowing("with suppress(Exception):\n  a()\n")] == [1]
    assert [*swallowing("try:\n  a()\nexcept Exception as e:\n  halt_if_out_of_memory(e)\n  log()\n")] == []
    assert [*swallowing("try:\n  a()\nexcept BaseException:\n  close()\n  raise\n")] == []
    assert [*swallowing("try:\n  a()\nexcept OSError:\n  log()\n")] == []
