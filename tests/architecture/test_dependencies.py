"""Dependencies point one way (docs/design.md "Dependencies"), import by import."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.sources import LOADERS, Import, Module, imports, loaded, modules, nodes, within

#: Room -> what of ours it may import besides itself. The most precise room counts.
ALLOWED: dict[str, tuple[str, ...]] = {
    "chaos": ("loadgen", "verifier", "cluster", "chaos.proxy"),
    "chaos.proxy": ("cluster.seams", "cluster.hosts"),
    "loadgen": ("cluster", "verifier.evidence"),
    "verifier": (
        "cluster.process.java",
        # How a process is started and what it logs; nothing that reads evidence.
        "cluster.process.one_line",
        "cluster.process.safe_path",
        "verifier.evidence",
        "verifier.operations",
    ),
    "verifier.evidence": (),
    # No Spark, no segments: of the verifier only how verdicts look and how files are written.
    "verifier.operations": (
        "cluster.process.safe_path",
        "verifier.evidence",
        "verifier.facts",
        "verifier.telling.markdown",
        "verifier.telling.suites",
        "verifier.verdict",
    ),
    "cluster.broker": (
        "cluster.coordinator",
        "cluster.controller",
        "cluster.replication",
        "cluster.log",
        "cluster.metadata",
        "cluster.protocol",
        "cluster.seams",
        "cluster.config",
        "cluster.hosts",
        "cluster.invariants",
        "cluster.isr",
        "cluster.topic_partition",
        # Brokers talk to each other over a client's connection.
        "cluster.client.connection",
        # The entry of a supervised child names the type of its channel.
        "cluster.process.child",
        # What only a process has: its heaps, its garbage and its log.
        "cluster.process.arenas",
        "cluster.process.garbage",
        "cluster.process.one_line",
        "cluster.process.paced",
        "cluster.process.supervisor",
    ),
    # A defect wraps a decision function of the broker's rules.
    "cluster.defects": (
        "cluster.broker.rules",
        "cluster.broker.replicas.verified",
        "cluster.controller.election",
        "cluster.coordinator",
        "cluster.isr",
        "cluster.log",
        "cluster.protocol",
        "cluster.replication",
        "cluster.seams",
        "cluster.topic_partition",
    ),
    "cluster.client": (
        "cluster.protocol",
        "cluster.seams",
        "cluster.config",
        "cluster.invariants",
        "cluster.topic_partition",
    ),
    "cluster.log": (
        "cluster.protocol",
        "cluster.seams",
        "cluster.config",
        "cluster.invariants",
        "cluster.topic_partition",
    ),
    "cluster.replication": (
        "cluster.protocol.errors",
        "cluster.seams",
        "cluster.config",
        "cluster.invariants",
        "cluster.isr",
    ),
    "cluster.controller": (
        "cluster.protocol.errors",
        "cluster.seams",
        "cluster.config",
        "cluster.invariants",
        "cluster.isr",
    ),
    "cluster.coordinator": (
        "cluster.protocol",
        "cluster.seams",
        "cluster.config",
        "cluster.invariants",
        "cluster.topic_partition",
    ),
    "cluster.metadata": ("cluster.seams", "cluster.config"),
    "cluster.protocol": ("cluster.seams",),
    # The transports parse frames in place.
    "cluster.seams": ("cluster.protocol.framing", "cluster.protocol.errors"),
    "cluster.config": (),
    "cluster.invariants": (),
    "cluster.isr": ("cluster.protocol.errors",),
    "cluster.topic_partition": (),
    "cluster.hosts": (),
    "cluster.process": ("cluster.seams",),
    "cluster.health": ("cluster.client", "cluster.seams"),
}

#: Who may import the defects, and why.
DEFECT_USERS = {
    "cluster.broker.main": "switches them on, once, at the start",
    "chaos.commands.listing": "prints their names",
    "chaos.experiment.resolve": "refuses an unknown name before anything is started",
}


def room_of(name: str) -> str:
    """The most precise room of the table that a module lies in."""
    rooms = [room for room in ALLOWED if within(name, room)]
    return max(rooms, key=len) if rooms else name


@cache
def ours() -> list[Import]:
    return [each for module in modules() for each in imports(module) if each.target.split(".")[0] in TOPS]


TOPS = ("cluster", "loadgen", "chaos", "verifier", "tests", "bench")


def test_every_module_lies_in_a_room() -> None:
    """A new room is added to the table, with what it may import; the packages themselves import nothing."""
    packages = {"cluster"}
    assert [
        module.name for module in modules() if room_of(module.name) not in ALLOWED and module.name not in packages
    ] == []


def test_dependencies_point_one_way() -> None:
    """No room imports what the design does not allow it to."""
    wrong = [
        each
        for each in ours()
        if (room := room_of(each.module)) != room_of(each.target) and not _allowed(each.target, ALLOWED.get(room, ()))
    ]
    assert not wrong, "\n".join(map(str, wrong))


def _allowed(target: str, allowed: tuple[str, ...]) -> bool:
    # Defects are inside cluster, and no one's to import but by the table of their own.
    if within(target, "cluster.defects"):
        return True
    return any(within(target, room) for room in allowed)


def test_defects_are_imported_by_the_table_alone() -> None:
    """The correct code has no hook for defects: of the brokers only their main imports them."""
    users = {each.module for each in ours() if within(each.target, "cluster.defects")}
    users = {user for user in users if not within(user, "cluster.defects")}
    assert users == set(DEFECT_USERS)
    assert [user for user in users if within(user, "cluster")] == ["cluster.broker.main"]


@pytest.mark.parametrize(
    ("one", "other"), [("cluster.replication", "cluster.log"), ("cluster.log", "cluster.replication")]
)
def test_replication_and_log_do_not_know_each_other(one: str, other: str) -> None:
    """What joins them is the broker."""
    assert [str(each) for each in ours() if within(each.module, one) and within(each.target, other)] == []


def test_rooms_of_control_stand_one_above_the_other() -> None:
    """``office`` uses ``controller``, that uses ``links``, that uses ``membership``, and never the other way round."""
    control = "cluster.broker.control"
    for place, room in enumerate(CONTROL_ROOMS):
        above = [f"{control}.{other}" for other in CONTROL_ROOMS[:place]] + [f"{control}.control_plane"]
        wrong = [
            str(each)
            for each in ours()
            if within(each.module, f"{control}.{room}") and any(within(each.target, other) for other in above)
        ]
        assert not wrong, "\n".join(wrong)


#: Of the broker's part in control, from above.
CONTROL_ROOMS = ("office", "controller", "links", "membership")


def test_no_module_needs_one_that_needs_it() -> None:
    """There is no circle of imports, not even of types alone."""
    names = {module.name for module in modules()}
    graph = {module.name: {each.target for each in imports(module)} & names - {module.name} for module in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_yaml_is_read_in_one_place() -> None:
    """What people write goes through the loader that refuses a key given twice; schedules are also written."""
    users = {each.module for module in modules() for each in imports(module) if within(each.target, "yaml")}
    assert {user for user in users if not within(user, "tests")} == {"loadgen.documents", "chaos.schedules.model"}


def test_nothing_imports_tests() -> None:
    """The product does not need its tests, nor its benchmarks."""
    assert [str(each) for each in ours() if each.target.split(".")[0] in ("tests", "bench")] == []


def test_the_verifier_shares_no_parsing_with_the_cluster() -> None:
    """A codec bug must not agree with itself: the verifier imports neither the protocol nor its CRC library."""
    crc = {each.target.split(".")[0] for module in modules("cluster") for each in imports(module)} & CRC_LIBRARIES
    theirs = {each.target.split(".")[0] for module in modules("verifier") for each in imports(module)} & CRC_LIBRARIES
    assert crc
    assert theirs
    assert not crc & theirs


CRC_LIBRARIES = {"crc32c", "google_crc32c"}


#: Modules that load others by a name that is not written out, and why.
LOADING = {
    "cluster.client": "its names come from the modules of a table, when they are asked for",
    "chaos.commands.main": "each command registers itself; the table of commands is beside it",
    "cluster.process.child": "the entry of a supervised process is named by its parent",
    "cluster.process.safe_path": "packages of others that must not lie in the current directory",
    "cluster.protocol.kafka_schemas": "kafka-python's classes without its package's own imports",
    "verifier.anomalies.document": "goes through the modules of its own package",
    "verifier.findings": "a check's module has the name of its anomaly",
    "verifier": "its names come from the modules of a table, when they are asked for",
}


def hidden_loads(module: Module) -> list[int]:
    """The lines that load a module by a name that only the run knows: no table of imports can see it."""
    return [
        node.lineno
        for node in nodes(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in LOADERS and loaded(node) is None
    ]


def test_no_import_is_hidden() -> None:
    """A name that is written out is an import as any other; one that is not has its reason."""
    found = {module.name for module in modules() if hidden_loads(module)}
    assert found == {*LOADING}
    assert all(LOADING.values())


def test_a_hidden_import_is_found() -> None:
    """Written out it is an import; made of parts it is hidden."""
    text = 'import_module("verifier.report")\nimport_module(f"verifier.{name}")\n__import__(name)'
    module = Module("cluster.log.m", Path("m.py"), ast.parse(text), 3)
    assert [each.target for each in imports(module)] == ["verifier.report"]
    assert not _allowed("verifier.report", ALLOWED["cluster.log"])
    assert hidden_loads(module) == [2, 3]
