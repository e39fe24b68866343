"""Time, randomness, sockets and files are touched in the seams alone (docs/design.md "Pure decisions, six seams")."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT, Module, imports, loaded, modules, nodes, within

#: What must not be used outside the seams: modules as a whole, and single calls.
MODULES = ("time", "random", "secrets", "socket", "select", "selectors", "subprocess", "tempfile", "urllib.request",
           "http.client", "http.server", "socketserver")  # fmt: skip
CALLS = ("open", "os.open", "os.write", "os.read", "os.pread", "os.pwrite", "os.fsync", "os.rename", "os.replace",
         "os.remove", "os.unlink", "os.mkdir", "os.makedirs", "os.truncate", "os.ftruncate", "os.sendfile",
         "os.urandom", "io.open", "shutil.rmtree", "uuid.uuid1", "uuid.uuid4", "datetime.now", "datetime.datetime.now",
         "datetime.utcnow", "datetime.datetime.utcnow", "datetime.today",
         "datetime.datetime.today", "date.today", "datetime.date.today", "os.rmdir",
         "os.link", "os.symlink", "os.writev", "os.pwritev", "os.preadv", "shutil.move", "shutil.copy",
         "shutil.copyfile", "shutil.copytree", "os.getrandom", "numpy.random.default_rng",
         "asyncio.open_connection", "asyncio.start_server")  # fmt: skip
METHODS = ("create_server", "create_connection", "write_text", "write_bytes", "read_text", "read_bytes")
#: Methods of paths that others have as well: they count where a module knows paths.
PATH_METHODS = ("open", "unlink", "mkdir", "rename", "touch", "rmdir", "symlink_to", "hardlink_to")

#: By these names the seams are known: their methods are the way.
SEAMS = ("storage", "store", "disk")

#: Where what may be used nevertheless, and why. A name is a module or a room; the most precise one counts.
EXCEPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "cluster.seams": (("*",), "they are the seams"),
    "cluster.process": (("*",), "it works on the machine's processes, which no virtual clock or storage has"),
    "chaos.proxy": (("socket", "create_server", "create_connection", "start_server"), "a network server by nature"),
    "chaos.links.ping": (
        ("socket", "create_connection"),
        "it measures bare connections: refused, late, or ended",
    ),
    "chaos.commands": (
        ("read_bytes", "now", "rmtree", "subprocess", "open", "mkdir", "unlink"),
        "the command line reads the user's files, names runs by the wall clock and starts what stays behind",
    ),
    "chaos.commands.runs.pruning": (
        ("os.open", "rmtree", "rmdir"),
        "it removes a stored run, under the verifier's lock",
    ),
    "chaos.conductor.foreign_cluster": (
        ("mkdir", "shutil.copyfile"),
        "it copies the replica files of a cluster that others started into the run",
    ),
    "chaos.conductor.nodes": (
        ("subprocess", "read_text"),
        "it reads pid files, and what it starts is not the run's own and outlives it",
    ),
    "chaos.conductor.served_logs": (("mkdir", "touch", "open"), "it writes what a leader serves into the run"),
    "chaos.conductor.leftovers": (("unlink",), "it removes its record of what runs, also that of a dead conductor"),
    "chaos.shrinking.shrinker": (("mkdir",), "it makes the directory of a search"),
    "chaos.sweeps.directory": (("mkdir", "rename"), "it makes the directory of a sweep, and puts files in place whole"),
    "loadgen.documents": (("read_bytes",), "it reads the files that users write, before anything runs"),
    "loadgen.users.standalone_load": (("subprocess",), "what reads back must not have Locust's patched sockets"),
    "verifier.spark.plain_paths": (
        ("tempfile", "os.symlink", "rmtree"),
        "Spark reads no path with a glob in it: it gets a link",
    ),
    "verifier.spark.session": (
        ("subprocess", "tempfile", "mkdir", "open"),
        "it waits for the end of the Java process that it started, and has scratch and a log for it",
    ),
    "verifier.spark.staging": (("subprocess", "mkdir"), "it has evidence read by a process a core"),
    "verifier.spark.staging_part": (("os.read",), "such a process ends with its standard input"),
    "verifier.verify_runs": (("os.open", "rmtree", "mkdir"), "it locks the run directory and has its scratch"),
    "verifier": (
        ("read_text", "write_text", "rmtree", "open", "mkdir", "unlink", "symlink_to"),
        "it reads a finished run's files and writes its report",
    ),
}


@cache
def uses(module: Module) -> tuple[tuple[str, int], ...]:
    """What a module uses of the forbidden, with the line."""
    return tuple(_uses(module))


def _uses(module: Module) -> Iterator[tuple[str, int]]:
    names = dict(_names(module))
    called_here = {id(node.func) for node in nodes(module) if isinstance(node, ast.Call)}
    knows_paths = any(
        "pathlib" in {name.name.split(".")[0] for name in node.names}
        if isinstance(node, ast.Import)
        else node.module == "pathlib"
        for node in nodes(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if _is_forbidden(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            base = node.module or ""
            for alias in node.names:
                # Random is a type of the seam: naming it draws nothing.
                if base == "random" and alias.name == "Random":
                    continue
                if _is_forbidden(base) or _is_forbidden(f"{base}.{alias.name}"):
                    yield (base, node.lineno)
        elif isinstance(node, ast.Call):
            called = _full(ast.unparse(node.func), names)
            owner, _dot, method = called.rpartition(".")
            if owner.split(".")[0] in PACKAGES:
                continue  # ours, and judged where it is defined
            is_path = method in PATH_METHODS and knows_paths and not _is_seam(owner)
            if called in CALLS or (owner and (method in METHODS or is_path)):
                yield (called, node.lineno)
            elif (target := loaded(node)) and _is_forbidden(target):
                yield (target, node.lineno)
        elif (
            isinstance(node, ast.Attribute | ast.Name)
            and isinstance(node.ctx, ast.Load)
            and id(node) not in called_here
        ):
            # given away to be called elsewhere; what is called here was seen above
            named = _full(ast.unparse(node), names)
            if named in CALLS and named != "open":
                yield (named, node.lineno)


def _is_forbidden(name: str) -> bool:
    return any(within(name, each) for each in MODULES)


def _names(module: Module) -> Iterator[tuple[str, str]]:
    """What the names that a module imports stand for: ``from os import fsync as f`` makes ``f`` ``os.fsync``."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _full(called: str, names: dict[str, str]) -> str:
    first, dot, rest = called.partition(".")
    return f"{names.get(first, first)}{dot}{rest}"


def _is_seam(owner: str) -> bool:
    """Whether a method of that name is the storage's, or of what it opened."""
    return owner.rpartition(".")[2].lstrip("_") in SEAMS


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


#: The rooms that decide and act not: those that docs/design.md calls pure, and the configuration.
PURE = (
    "cluster.protocol",
    "cluster.replication",
    "cluster.controller",
    "cluster.coordinator",
    "cluster.config",
    "chaos.experiment",
    "verifier.completeness",
    "verifier.suspects",
)
#: What waits, runs beside or speaks by itself.
BUSY = ("asyncio", "threading", "concurrent", "multiprocessing", "queue", "logging", "sched", "signal", "gevent")
#: What a pure room does nevertheless, and why.
NOT_SO_PURE: dict[str, tuple[tuple[str, ...], str]] = {}


def acts(module: Module) -> Iterator[tuple[str, int]]:
    """Where a module waits, takes a lock, starts something or logs."""
    for node in nodes(module):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield "await", node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            yield "print", node.lineno
        elif isinstance(node, ast.Call) and (target := loaded(node)) and target.split(".")[0] in BUSY:
            yield target, node.lineno
    for each in imports(module, run_time_only=True):
        if any(within(each.target, busy) for busy in BUSY):
            yield each.target.split(".")[0], each.line


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_wait_for_nothing(room: str) -> None:
    """The pure rooms have no coroutine, no thread, no lock and no log: they decide, others act."""
    wrong = [
        f"{module.name}:{line} has {what}"
        for module in modules(room.split(".")[0])
        if within(module.name, room)
        for what, line in acts(module)
        if what not in NOT_SO_PURE.get(module.name, ((), ""))[0]
    ]
    assert wrong == []


def test_what_is_called_pure_is_judged() -> None:
    """Each room that docs/design.md marks as pure is in the list."""
    tree = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    called, top, name = set(), "", ""
    for line in tree.splitlines():
        if match := re.match(r"(  )?([\w.]+)/", line):
            top, name = (top, f"{top}.{match[2]}") if match[1] else (match[2], match[2])
        if "(pure)" in line:
            called.add(name)
    assert len(called) > 3
    assert called <= {*PURE}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from threading import Lock", ["threading"]),
        ("import logging\nlogger = logging.getLogger()", ["logging"]),
        ("from asyncio import sleep", ["asyncio"]),
        ("async def f(): ...", ["await"]),
        ('import_module("threading")', ["threading"]),
        ("if TYPE_CHECKING:\n    from asyncio import Future", []),
    ],
)
def test_an_act_is_found(text: str, found: list[str]) -> None:
    """In whatever form it is imported; a type is no act."""
    assert [what for what, _line in acts(Module("m", Path("m.py"), ast.parse(text), 1))] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from os import fsync\nfsync(1)", ["os.fsync"]),
        ("from os import fsync as f\nf(1)", ["os.fsync"]),
        ("import os as o\no.unlink(a)", ["os.unlink"]),
        ("import pathlib\na.open()\na.unlink()\na.mkdir()\na.rename()", ["open", "unlink", "mkdir", "rename"]),
        ("from uuid import uuid4\nuuid4()", ["uuid.uuid4"]),
        ("from datetime import date, datetime\ndate.today()\ndatetime.now()", ["today", "now"]),
        ("import secrets\nimport tempfile", ["secrets", "tempfile"]),
        ("from urllib import request", ["urllib"]),
        ("from urllib.request import urlopen", ["urllib.request"]),
        ('importlib.import_module("time")', ["time"]),
        ('__import__("socket")', ["socket"]),
        ("import os\nf(remove=os.unlink)", ["os.unlink"]),
        ("from urllib.parse import quote\nfrom random import Random\nself._storage.open(a)", []),
        ("from pathlib import Path\nself._storage.open(a)", []),
    ],
)  # fmt: skip
def test_a_use_of_the_machine_is_found(text: str, found: list[str]) -> None:
    """Under any name it is imported by, called or given away, and loaded by a text."""
    used = [used for used, _line in uses(Module("m", Path("m.py"), ast.parse(text), 1))]
    assert [one.endswith(other) for one, other in zip(used, found, strict=True)] == [True] * len(found)
