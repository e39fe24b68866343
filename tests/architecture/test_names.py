"""One word, one thing: a class or a type has a name of its own, a module tells itself from the others of its package.

Owns the tables of the names that are there more than once, each with its reason. Tests are left out: their stand-ins
have the names of what they stand in for, and the oracle of the verifier is a second implementation on purpose.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.architecture.sources import PACKAGES, Module, modules, nodes

JUDGED = (*PACKAGES, "bench")

#: Types that share their name: the modules that have it, and why.
SHARED_TYPES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "TopicPartition": (
        ("cluster.controller.context", "cluster.topic_partition", "verifier.transactions.state_records"),
        "the controller's is the same tuple with named fields; the verifier shares no code with the cluster",
    ),
}

_CAPITALIZED = re.compile(r"_?[A-Z]\w*[a-z]\w*")
#: What makes a class when it is called.
_CLASS_MAKERS = ("NamedTuple", "namedtuple", "TypedDict", "NewType", "type", "make_dataclass", "Enum", "IntEnum")


def duplicates(found: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The names of (name, place) that stand in more than one place, with the places in order."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in found:
        places[name].append(place)
    return {name: tuple(sorted(there)) for name, there in sorted(places.items()) if len(there) > 1}


def types(judged: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """(name, module) of every class outside of functions, private or not, and of every public name for a type.

    A private name for a type is shorthand within its module: it counts only if it makes a class of its own. Type
    variables are no types.
    """
    for module in judged:
        for node in _statements(module.tree.body):
            if isinstance(node, ast.ClassDef):
                yield node.name.lstrip("_"), module.name
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and _names_type(target.id, node.value):
                        yield target.id.lstrip("_"), module.name


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also below ``if``, ``try`` and ``with``, and the classes within classes."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            inner = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
            inner += [handler.body for handler in getattr(node, "handlers", [])]
            for each in inner:
                yield from _statements(each)


def _names_type(name: str, value: ast.expr | None) -> bool:
    if not _CAPITALIZED.fullmatch(name):
        return False
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _CLASS_MAKERS
    return not name.startswith("_")


def test_a_type_has_a_name_of_its_own() -> None:
    """No two types share a name, but for those of the table; and the table holds no name too many."""
    assert all(reason for _, reason in SHARED_TYPES.values())
    allowed = {name: places for name, (places, _) in SHARED_TYPES.items()}
    assert duplicates(types(modules(*JUDGED))) == allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A: ...\nclass A: ...", {"A": ("m", "m")}),
        ("class _B: ...\nclass B: ...", {"B": ("m", "m")}),
        ("class _B: ...\nclass _B: ...", {"B": ("m", "m")}),
        ("class A: ...\nif TYPE_CHECKING:\n    class A: ...", {"A": ("m", "m")}),
        ("try:\n    class A: ...\nexcept ImportError:\n    class A: ...", {"A": ("m", "m")}),
        ("class Segment: ...\nSegment = _Other", {"Segment": ("m", "m")}),
        ("class Pair: ...\nPair: TypeAlias = tuple[int, int]", {"Pair": ("m", "m")}),
        ('class Pair: ...\n_Pair = NamedTuple("_Pair", [])', {"Pair": ("m", "m")}),
        ('class Row: ...\nRow = typing.TypedDict("Row", {})', {"Row": ("m", "m")}),
        ("class A: ...\ndef f():\n    class A: ...", {}),
        ('class A: ...\nA = TypeVar("A")', {}),
        ("class A: ...\n_A = wire.A\nLIMIT = 1\nLIMIT = 2", {}),
    ],
)
def test_a_shared_name_is_found(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    """Whatever makes a type counts, wherever it stands in a module; what is a function's own does not."""
    module = Module("m", modules(*JUDGED)[0].path, ast.parse(text), 1)
    assert duplicates(types([module])) == expected


#: What a module is to its package, in as many packages as have one: the name says the part, the package says whose.
ROLES: Mapping[str, str] = {
    "admin": "one side has the calls, the other their configuration",
    "base": "what all members of a family share",
    "catalogue": "the list of what a package offers, by name",
    "checkpoints": "one has the files, the other writes them when it is time",
    "command": "a command of the command line with a package of its own",
    "confluent": "one client for each use of it: as producer and reader, or as member of a group",
    "consumer": "one is the client, the other its configuration",
    "coordinator": "the face of each coordinator",
    "decisions": "what each coordinator decides",
    "declared": "one is what was declared, the other judges whether it is there",
    "describing": "the answers of each coordinator that change nothing",
    "document": "prints the tables of a package as a page",
    "errors": "the exceptions, or error codes, of a package",
    "invariants": "what always holds of the objects of a package",
    "loading": "reads the state of a package back from its log",
    "messages": "the messages of a package",
    "metrics": "what is counted in a package",
    "model": "the values that a package is about",
    "native": "our own client, for each use of it",
    "producer": "one is the client, the other its configuration",
    "records": "the layout of the records of a package",
    "rows": "what a package hands to Arrow or Spark, as columns",
    "rules": "the decision functions of a package as one value",
    "settings": "what a package takes from the configuration",
    "states": "the states of a machine and how one leads to another",
    "stubs": "writes the stub of a package",
    "topics": "one decides, the other carries out",
    "words": "what a package says to people",
}
#: What else is there twice: the modules, and why. One side of most pairs decides or declares what the other one does.
SHARED_MODULES: Mapping[str, tuple[tuple[str, ...], str]] = {
    **{
        f"chaos: {name}": (
            (f"chaos.faults.{name}", f"chaos.proxy.toxics.{name}"),
            "one is the fault, the other the toxic that it puts on links",
        )
        for name in ("bandwidth", "slicer", "slow_close")
    },
    "chaos: frames": (
        ("chaos.links.frames", "chaos.proxy.frames", "chaos.proxy.toxics.frames"),
        "each side of the proxy knows the frames it sees: its control, its links, its toxics",
    ),
    "chaos: load": (
        ("chaos.commands.load", "chaos.conductor.load"),
        "one is the command, the other the phase of a run",
    ),
    "chaos: page": (
        ("chaos.commands.runs.page", "chaos.sweeps.report.page"),
        "the page of a stored run, and that of a sweep",
    ),
    "cluster: alter_partition": (
        (
            "cluster.broker.control.links.alter_partition",
            "cluster.broker.handlers.alter_partition",
            "cluster.controller.alter_partition",
        ),
        "the decision, and both sides' layout",
    ),
    "cluster: answering": (
        ("cluster.broker.answering", "cluster.client.producer.transaction.answering"),
        "the broker's way to an answer, and what an answer means to a transactional producer",
    ),
    "cluster: answers": (
        ("cluster.client.producer.transaction.answers", "cluster.coordinator.group.answers"),
        "what a coordinator answers, and what a client makes of answers",
    ),
    "cluster: apis": (
        ("cluster.broker.control.office.apis", "cluster.protocol.apis"),
        "what a controller is asked, and the table of API keys",
    ),
    "cluster: assignment": (
        ("cluster.client.consumer.assignment", "cluster.controller.assignment"),
        "of partitions to consumers, and of replicas to brokers",
    ),
    "cluster: batch": (
        ("cluster.client.producer.batch", "cluster.protocol.batch"),
        "the one that is being filled, and the layout",
    ),
    "cluster: connection": (
        ("cluster.client.connection", "cluster.protocol.connection"),
        "a client's, and the state of a connection in the protocol",
    ),
    "cluster: control_fence": (
        ("cluster.broker.handlers.control_fence", "cluster.controller.control_fence"),
        "the decision, and the handlers' use of it",
    ),
    "cluster: controlled_shutdown": (
        ("cluster.broker.control.controller.controlled_shutdown", "cluster.broker.handlers.controlled_shutdown"),
        "the handler, and what the controller does",
    ),
    "cluster: exchange": (
        ("cluster.broker.exchange", "cluster.client.exchange"),
        "a request on its way, on each side of the wire",
    ),
    "cluster: fetch": (("cluster.broker.handlers.fetch", "cluster.protocol.fetch"), "the handler, and its layout"),
    "cluster: isr": (
        ("cluster.isr", "cluster.replication.isr"),
        "the shapes that both sides share, and a leader's decisions",
    ),
    "cluster: manager": (
        ("cluster.client.producer.transaction.manager", "cluster.log.manager"),
        "of logs, and of a producer's transactions: Kafka's LogManager and TransactionManager",
    ),
    "cluster: offline": (
        ("cluster.controller.offline", "cluster.log.offline"),
        "replicas that a broker cannot host, and a log that could not be opened",
    ),
    "cluster: outcomes": (
        ("cluster.client.producer.outcomes", "cluster.log.outcomes"),
        "of what was sent, and of what was appended",
    ),
    "cluster: produce": (
        ("cluster.broker.handlers.produce", "cluster.protocol.produce"),
        "the handler, and its layout",
    ),
    "cluster: producer_ids": (
        ("cluster.broker.control.links.producer_ids", "cluster.controller.producer_ids"),
        "the decision, and a broker's blocks",
    ),
    "cluster: zookeeper": (("cluster.metadata.zookeeper", "cluster.process.zookeeper"), "the store, and the process"),
    "loadgen: choice": (("loadgen.clients.choice", "loadgen.members.choice"), "which client, for each use of it"),
    "loadgen: transactional": (
        ("loadgen.clients.transactional", "loadgen.users.transactional"),
        "the client, and the user that drives it",
    ),
    "verifier: belonging": (
        ("verifier.accounts.belonging", "verifier.completeness.belonging"),
        "to what rows belong, and what follows where some belong to nothing",
    ),
    "verifier: clients": (
        ("verifier.surroundings.clients", "verifier.suspects.clients"),
        "what is shown of them, and what in their histories is suspect",
    ),
    "verifier: columns": (
        ("verifier.accounts.columns", "verifier.operations.columns"),
        "sums over those of a history, and operations as columns",
    ),
    "verifier: cycles": (
        ("verifier.operations.cycles", "verifier.transactions.cycles"),
        "of operations, and of transactions",
    ),
    "verifier: events": (
        ("verifier.excuses.events", "verifier.explain.events"),
        "what happened in a run, and the words for it",
    ),
    "verifier: files": (
        ("verifier.anomalies.files", "verifier.explain.files"),
        "the anomalies as data, and the words for them",
    ),
    "verifier: findings": (
        ("verifier.findings", "verifier.operations.findings"),
        "of a run with Spark, and of a history without it",
    ),
    "verifier: groups": (
        ("verifier.anomalies.groups", "verifier.explain.groups", "verifier.report.groups"),
        "the anomalies as data, the words for them, and their part of the page",
    ),
    "verifier: headers": (
        (
            "verifier.anomalies.headers",
            "verifier.explain.headers",
            "verifier.files.headers",
            "verifier.report.headers",
            "verifier.suspects.headers",
        ),
        "the anomalies as data, the words for them, what is read, their part of the page, and what is suspect",
    ),
    "verifier: logs": (
        ("verifier.coordinators.logs", "verifier.groups.logs", "verifier.transactions.logs"),
        "whether they can be read, and what is read of them, for groups and for transactions",
    ),
    "verifier: readers": (
        ("verifier.anomalies.readers", "verifier.explain.readers"),
        "the anomalies as data, and the words for them",
    ),
    "verifier: replicas": (
        ("verifier.completeness.replicas", "verifier.surroundings.replicas"),
        "whether they are complete, and what is shown of them",
    ),
    "verifier: serving": (
        ("verifier.anomalies.serving", "verifier.explain.serving"),
        "the anomalies as data, and the words for them",
    ),
    "verifier: tables": (("verifier.report.tables", "verifier.tables"), "Spark's tables, and those of the page"),
    "verifier: timing": (
        ("verifier.anomalies.timing", "verifier.explain.timing"),
        "the anomalies as data, and the words for them",
    ),
    "verifier: transactions": (
        ("verifier.anomalies.transactions", "verifier.explain.transactions", "verifier.files.transactions"),
        "the anomalies as data, the words for them, and what is read",
    ),
    "verifier: values": (
        ("verifier.anomalies.values", "verifier.suspects.values"),
        "the anomalies as data, and what is suspect",
    ),
}


def base_names(judged: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """(top-level package and base name, module); packages themselves are told apart by their paths."""
    for module in judged:
        if module.path.name != "__init__.py":
            top, _, rest = module.name.partition(".")
            yield f"{top}: {rest.rpartition('.')[2]}", module.name


def test_a_module_has_a_name_of_its_own() -> None:
    """A base name occurs once in a top-level package, unless it is a role or in the table."""
    assert all([*ROLES.values(), *(reason for _, reason in SHARED_MODULES.values())])
    shared = {
        name: places
        for name, places in duplicates(base_names(modules(*JUDGED))).items()
        if name.partition(": ")[2] not in ROLES
    }
    assert shared == {name: places for name, (places, _) in SHARED_MODULES.items()}


def test_every_role_is_played_twice() -> None:
    """A role that one module alone plays is no exception anymore."""
    twice = {name.partition(": ")[2] for name in duplicates(base_names(modules(*JUDGED)))}
    assert set(ROLES) - twice == set()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a.b.values", "a.c.values"), {"a: values": ("a.b.values", "a.c.values")}),
        (("a.values", "a.c.d.values"), {"a: values": ("a.c.d.values", "a.values")}),
        (("a.b.values", "c.b.values"), {}),
    ],
)
def test_a_shared_module_name_is_found(names: Iterable[str], expected: dict[str, tuple[str, ...]]) -> None:
    """Two modules of one package, however deep, have names that differ."""
    path = modules(*JUDGED)[1].path.with_name("values.py")
    assert duplicates(base_names(Module(name, path, ast.parse(""), 1) for name in names)) == expected


def test_loggers_are_called_logger() -> None:
    """A module's logger is ``logger``. What logs for another library, or for its own, may say so before that word."""
    wrong = []
    for module in modules(*JUDGED):
        for node in nodes(module):
            if isinstance(node, ast.Assign) and _is_get_logger(node.value):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                wrong += [f"{module.name}:{node.lineno} {name}" for name in names if not name.endswith("logger")]
    assert wrong == []


def _is_get_logger(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("logging.getLogger", "getLogger")
