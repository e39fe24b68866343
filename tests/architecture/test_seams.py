"""Time, randomness, sockets and files are touched in the seams alone (docs/design.md "Pure decisions, six seams")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.architecture.sources import Module, modules, nodes, within

#: What must not be used outside the seams: modules as a whole, and single calls.
MODULES = ("time", "random", "socket", "select", "selectors", "subprocess")
CALLS = ("open", "os.open", "os.write", "os.read", "os.pread", "os.pwrite", "os.fsync", "os.rename", "os.replace",
         "os.remove", "os.unlink", "os.mkdir", "os.makedirs", "os.truncate", "os.ftruncate", "os.sendfile",
         "os.urandom", "io.open", "shutil.rmtree", "uuid.uuid1", "uuid.uuid4", "datetime.now", "datetime.datetime.now",
         "datetime.utcnow", "asyncio.open_connection", "asyncio.start_server")  # fmt: skip
METHODS = ("create_server", "create_connection", "write_text", "write_bytes", "read_text", "read_bytes")

#: Where what may be used nevertheless, and why. A name is a module or a room; the most precise one counts.
EXCEPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "cluster.seams": (("*",), "they are the seams"),
    "cluster.process": (("*",), "it works on the machine's processes, which no virtual clock or storage has"),
    "chaos.proxy": (("socket", "create_server", "create_connection", "start_server"), "a network server by nature"),
    "chaos.commands": (
        ("read_bytes", "now", "rmtree", "subprocess"),
        "the command line reads the user's files, names runs by the wall clock and starts what stays behind",
    ),
    "chaos.commands.runs.pruning": (("os.open", "rmtree"), "it removes a stored run, under the verifier's lock"),
    "loadgen.documents": (("read_bytes",), "it reads the files that users write, before anything runs"),
    "loadgen.users.standalone_load": (("subprocess",), "what reads back must not have Locust's patched sockets"),
    "verifier.spark": (("subprocess",), "it waits for the end of the Java process that it started"),
    "verifier.staging": (("subprocess",), "it has evidence read by a process a core"),
    "verifier.staging_part": (("os.read",), "such a process ends with its standard input"),
    "verifier.verify_runs": (("os.open", "rmtree"), "it locks the run directory and removes its scratch"),
    "verifier": (
        ("read_text", "write_text", "rmtree"),
        "it reads a finished run's files and writes its report",
    ),
}


@cache
def uses(module: Module) -> tuple[tuple[str, int], ...]:
    """What a module uses of the forbidden, with the line."""
    return tuple(_uses(module))


def _uses(module: Module) -> Iterator[tuple[str, int]]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES and node.level == 0:
            # Random is a type of the seam: naming it draws nothing.
            if not (node.module == "random" and {alias.name for alias in node.names} == {"Random"}):
                yield (node.module or "", node.lineno)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            owner, _dot, method = called.rpartition(".")
            if called in CALLS or (owner and method in METHODS):
                yield (called, node.lineno)


def excused(module: str, used: str) -> bool:
    rooms = [room for room in EXCEPTIONS if within(module, room)]
    if not rooms:
        return False
    allowed, _reason = EXCEPTIONS[max(rooms, key=len)]
    return "*" in allowed or any(
        used == each or used.rpartition(".")[2] == each or used.split(".")[0] == each for each in allowed
    )


def test_nothing_touches_the_machine_outside_the_seams() -> None:
    """What is not excused goes through Clock, Random, Transport, Selector, MetadataStore or Storage."""
    wrong = [
        f"{module.name}:{line} uses {used}"
        for module in modules()
        for used, line in uses(module)
        if not excused(module.name, used)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", sorted(EXCEPTIONS))
def test_every_exception_is_needed(room: str) -> None:
    """An exception that nothing needs any more is removed."""
    allowed, reason = EXCEPTIONS[room]
    found = {used for module in modules() if within(module.name, room) for used, _line in uses(module)}
    assert reason
    for each in allowed:
        hit = (
            found
            if each == "*"
            else {used for used in found if each in (used, used.rpartition(".")[2], used.split(".")[0])}
        )
        assert hit, f"{room} no longer needs {each}"


PURE = ("cluster.protocol", "cluster.replication", "cluster.controller", "cluster.coordinator", "cluster.config")


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_wait_for_nothing(room: str) -> None:
    """The pure rooms have no coroutine, no thread and no logging of their own time: they decide, others act."""
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in modules("cluster")
        if within(module.name, room)
        for node in nodes(module)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
        or (isinstance(node, ast.Import) and any(alias.name in ("asyncio", "threading") for alias in node.names))
    ]
    assert wrong == []
