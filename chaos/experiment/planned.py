"""Checks, before anything starts, whether faults can be injected in an experiment. Pure.

Owns the refusals of injections in a given schedule: kinds, targets and parameters that do not exist, and times after
the limit. Owns which kinds of faults can never bite in an experiment. Does not own which parameters a fault accepts
(the fault declares them) or the form of a schedule (``chaos.schedules.model``).
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

from chaos.experiment.asked import Asked
from chaos.experiment.choices import DEFAULT_FAULTS, LOAD_GROUPS
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import Experiment
from chaos.faults.accepted import integer
from chaos.faults.base import Fault, Reach
from chaos.faults.breakable import LoadPart
from chaos.faults.catalogue import FAULTS, GROUPS, UnknownFault, check_faults, parse_faults
from chaos.faults.under_test import CoordinatorOf
from chaos.schedules.model import Injection
from cluster.process.topology import link_names
from loadgen.group_plan import parse_members
from loadgen.workload import Workload
from loadgen.workloads import CATALOGUE

#: The target of a link fault that stands for every link on which a follower fetches from the leader.
FOLLOWERS = "followers"
MOST_NAMED = 4
#: The names of links to a cluster that gapless did not start.
_CLIENT_LINK = re.compile(rf"(?:{'|'.join(LOAD_GROUPS)})-b\d+")
#: What a fault needs access to -> why that is impossible in a cluster that gapless did not start.
_BEYOND_A_TARGET: Mapping[Reach, str] = {
    "other-links": "it breaks links between brokers or to ZooKeeper, and with --target no proxy is on them",
    "zookeeper": "it breaks ZooKeeper, and with --target gapless did not start it",
    "machines": "it breaks the disk, clock or memory of a broker, which only a broker that gapless starts lets it do",
    "journals": "whether it took effect shows only in journals and on disks of brokers that gapless starts",
    "topics": "it makes topics beside the load's, and with --target a run makes no other topic than its own",
    "clean-stop": "it shuts brokers down cleanly, and --nodes says only how they are killed",
    "data": "it removes a broker's data, and --nodes says only how brokers are killed and started",
}
#: Segments of this size in bytes are closed within seconds.
SMALL_SEGMENT = 131_072


def check_schedule(experiment: Experiment) -> None:
    """Raises ExperimentError for the first injection in the given schedule that this experiment cannot carry out."""
    given = experiment.asked.schedule
    for each in () if given is None else given.schedule.injections:
        for wrong in _wrong(each, experiment):
            raise ExperimentError(f"--schedule {given.path if given else ''}: {each.fault} at {each.at_s:g} s: {wrong}")
        _check_time(each, experiment)


def _wrong(injection: Injection, experiment: Experiment) -> Iterator[str]:
    """Everything that is wrong with the kind, the target and the parameters of one injection, in words."""
    try:
        check_faults([injection.fault])
    except UnknownFault as error:
        yield str(error)
        return
    fault = FAULTS[injection.fault]
    if (why := impossible(injection.fault, experiment.asked, experiment.workload)) is not None:
        yield f"{why}; take it out"
    yield from _unknown("target", injection.target, fault.targets)
    yield from _unknown("parameters", injection.parameters, [rule.name for rule in fault.accepts])
    partition = integer("partition", 0, experiment.partitions - 1)
    if not partition.allows(given := injection.target.get("partition", 0)):
        yield f"target partition must be {partition.words} (there are {experiment.partitions}), not {given!r}"
    if "link" in injection.target:
        yield from _wrong_link(injection.target["link"], fault, experiment)
    for rule in fault.accepts:
        if rule.name in injection.parameters and not rule.allows(value := injection.parameters[rule.name]):
            yield f"parameter {rule.name} must be {rule.words}, not {value!r}"


def coordinators_at_work(workload: Workload) -> frozenset[CoordinatorOf]:
    """The kinds of coordinators that this load uses all the time."""
    kinds: set[CoordinatorOf] = set()
    if workload.is_transactional:
        kinds.add("transaction")
    if workload.members is not None:
        kinds.add("group")
        if parse_members(workload.members).transform:
            kinds.add("transaction")
    return frozenset(kinds)


def parts_of_load(workload: Workload) -> frozenset[LoadPart]:
    """The parts of this load that only some loads have, and that faults on the load can hit."""
    has: dict[LoadPart, bool] = {"producers": workload.is_transactional, "members": workload.members is not None}
    return frozenset(part for part, is_there in has.items() if is_there)


def suits(kind: type[Fault], workload: Workload) -> bool:
    """Whether the load has what this fault needs."""
    has_coordinator = kind.needs_coordinator in (None, *coordinators_at_work(workload))
    return has_coordinator and kind.needs_load in (None, *parts_of_load(workload))


def impossible(fault: str, asked: Asked, workload: Workload) -> str | None:
    """Why a kind of fault can never bite in this run, so that a run with it is never valid; None if it can."""
    kind = FAULTS[fault]
    if asked.target is not None and (kind.needs_coordinator == "group" or kind.needs_load == "members"):
        return "it needs a workload with a consumer group, and such workloads are refused with --target"
    if not suits(kind, workload):
        return f"it needs a workload with {kind.needs_of_workload()}, and workload {workload.name} has none"
    if kind.acts_on_frames and asked.toxiproxy is not None:
        return "it needs gapless's own proxy, and --toxiproxy names another: Toxiproxy knows no frames of Kafka's"
    if kind.needs_idempotence and not _is_idempotent(asked):
        return "it delivers batches twice, which brokers notice only with --idempotence true and --acks all"
    if kind.by_name_alone and _acks(asked) not in ("all", "-1"):
        return "what it loses is told from what is lost without it only with --acks all"
    if asked.target is not None and (why := _out_of_reach(kind, asked)) is not None:
        return why
    if kind.hits == "zookeeper" and asked.zookeeper is not None:
        return "a ZooKeeper given with --zookeeper is never broken"
    if kind.kills_load == "producers" and asked.load_processes < 2:
        return "it kills one of several processes of producers, and there is one: give --load-processes 2"
    if kind.kills_load == "readers" and len(asked.readers) < 2:
        return "it kills the readers of one of two clients, and there is one: give --readers native,confluent"
    if kind.needs_closed_segments and not _rolls(asked):
        return (
            f"it needs closed segments, and logs seldom have any: give --topic-config segment.bytes={SMALL_SEGMENT}, "
            "or less"
        )
    if kind.system and kind.system != sys.platform:
        return f"it can be made on {kind.system} alone, and this is {sys.platform}"
    if asked.brokers < kind.least_brokers:
        return f"it needs {kind.least_brokers} brokers to take effect, but there is --brokers {asked.brokers}"
    if asked.replication_factor < kind.least_replicas:
        return (
            f"it needs {kind.least_replicas} replicas to take effect, but there is "
            f"--replication-factor {asked.replication_factor}"
        )
    return None


def _is_idempotent(asked: Asked) -> bool:
    """Whether producers are idempotent, which they are unless an option turns that off."""
    is_wanted = _given(asked).get("enable.idempotence", str(asked.idempotence is not False)).lower() == "true"
    return is_wanted and _acks(asked) in ("all", "-1")


def _acks(asked: Asked) -> str:
    """The ``acks`` of producers."""
    given = _given(asked)
    return given.get("acks", given.get("request.required.acks", str(asked.acks or "all")))


def _given(asked: Asked) -> Mapping[str, str]:
    """The keys of ``--producer-config``."""
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in asked.producer_config)}


def _out_of_reach(kind: type[Fault], asked: Asked) -> str | None:
    """Why this fault is impossible in a cluster that gapless did not start; None if it is possible."""
    if kind.reach == "processes" and asked.nodes is None:
        return "it needs the brokers' processes: give --nodes FILE, which says how they are killed and started"
    if kind.needs_counters and asked.toxiproxy is not None:
        return "what it dropped shows only in gapless's own proxy or in gapless's brokers: leave --toxiproxy out"
    return _BEYOND_A_TARGET.get(kind.reach)


def _rolls(asked: Asked) -> bool:
    """Whether ``--topic-config`` makes segments so small that each log soon has closed ones."""
    given = dict(pair.partition("=")[::2] for pair in asked.topic_config)
    size = given.get("segment.bytes", "").strip()
    return size.isdecimal() and int(size) <= SMALL_SEGMENT


def faults_of(asked: Asked, workload: Workload) -> tuple[tuple[str, ...], list[str]]:
    """The kinds of ``--faults``, and a line on each kind of a set that is left out because it can never bite here.

    Of a set, faults on coordinators and on parts of the load that this load lacks are left out without a line.

    Raises ExperimentError if one that can never bite was asked for by its name, UnknownFault for an unknown one.
    """
    text = asked.faults or DEFAULT_FAULTS
    names = parse_faults(text)
    wrong = {name: why for name in names if (why := impossible(name, asked, workload)) is not None}
    by_name = [name for name in wrong if text not in GROUPS]
    if by_name:
        raise ExperimentError(f"--faults {by_name[0]}: {wrong[by_name[0]]}; {_fix(FAULTS[by_name[0]], workload)}")
    # faults that need another load are not part of the set for this run, so they get no line
    told = {name: why for name, why in wrong.items() if FAULTS[name].needs_of_workload() is None}
    left_out = [f"--faults {text} without {name}: {why}" for name, why in told.items()]
    return tuple(name for name in names if name not in wrong), left_out


def _fix(kind: type[Fault], workload: Workload) -> str:
    """How to fix the refusal: another workload that the fault suits, if this one does not, or leave the fault out."""
    fitting = (
        None if suits(kind, workload) else next((each for each in CATALOGUE if suits(kind, CATALOGUE[each])), None)
    )
    return "leave it out" if fitting is None else f"use --workload {fitting}, or leave it out"


def _wrong_link(link: object, fault: type[Fault], experiment: Experiment) -> Iterator[str]:
    brokers = experiment.asked.brokers
    if experiment.asked.target is not None:
        if not re.fullmatch(_CLIENT_LINK, str(link)):
            yield f"--target has links only between clients and brokers, such as producers-b1, not {link!r}"
        return
    if link == FOLLOWERS and fault.takes_followers:
        if brokers == 1:
            yield f"target link {FOLLOWERS}: with --brokers 1 there are no followers"
        return
    names = [str(name) for name in link_names(range(1, brokers + 1), LOAD_GROUPS)]
    if link in names:
        return
    near = difflib.get_close_matches(str(link), names, n=MOST_NAMED)
    yield f"there is no link {link!r} with --brokers {brokers}; use one of {', '.join(near or names[:MOST_NAMED])}, ..."


def _unknown(what: str, given: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    for name in given:
        if name not in known:
            yield f"{what} has no {name!r}; it takes {', '.join(known) or 'none'}"


def _check_time(injection: Injection, experiment: Experiment) -> None:
    given, limit_s = experiment.asked.schedule, experiment.asked.time_limit_s
    if given is None or _ends_s(injection) <= limit_s:
        return
    late = "begins" if injection.at_s >= limit_s else f"lasts until {_ends_s(injection):g} s,"
    needed_s = math.ceil(max(map(_ends_s, given.schedule.injections)))
    raise ExperimentError(
        f"--schedule {given.path}: {injection.fault} at {injection.at_s:g} s {late} after the {limit_s:g} s of "
        f"--time-limit; give --time-limit {needed_s}s, or take it out"
    )


def _ends_s(injection: Injection) -> float:
    # times have two decimals, and their sum is not exact in binary
    return round(injection.at_s + injection.duration_s, 6)
