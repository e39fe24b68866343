"""``gapless list``: what can be named on the command line."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from chaos.exits import BadRequest
from chaos.experiment.choices import LOAD_GROUPS
from chaos.experiment.planned import FOLLOWERS
from chaos.faults.base import Fault
from chaos.faults.catalogue import DEFAULT, FAULTS, GROUPS
from chaos.schedules.swarms import SWARMS
from cluster.config import profiles
from cluster.defects import CATALOGUE
from cluster.process.topology import ZOOKEEPER, LinkName, link_names

HELP = "List the available faults, checks, defects, workloads, profiles, swarms, scenarios, sweeps or links."
#: The default number of brokers for the list of links.
BROKERS = 3


class What(StrEnum):
    """The lists."""

    FAULTS = "faults"
    CHECKS = "checks"
    DEFECTS = "defects"
    WORKLOADS = "workloads"
    PROFILES = "profiles"
    SWARMS = "swarms"
    SCENARIOS = "scenarios"
    SWEEPS = "sweeps"
    LINKS = "links"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", help=HELP)(list_what)


def list_what(
    what: Annotated[What, typer.Argument(metavar="LIST", help="What to list.")],
    brokers: Annotated[
        int | None, typer.Option(min=1, max=100, help=f"For links: number of brokers. [dim]default: {BROKERS}[/dim]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Print names and what they mean."""
    if brokers is not None and what is not What.LINKS:
        raise BadRequest("--brokers works only with 'gapless list links'; leave it out")
    entries = _links(brokers or BROKERS) if what is What.LINKS else _entries(what)
    if as_json:
        print(json.dumps(entries, indent=2))
        return 0
    width = max(map(len, entries), default=0)
    for name, summary in entries.items():
        print(f"{name:{width}}  {summary}")
    if what is What.FAULTS:
        print(
            f"({DEFAULT}): the default of --faults; --faults all selects every fault that the workload suits",
            file=sys.stderr,
        )
    return 0


def _links(brokers: int) -> dict[str, str]:
    """The links of a run with this number of brokers, and what each carries."""
    links = {str(link): _summary(link) for link in link_names(range(1, brokers + 1), LOAD_GROUPS)}
    return {**links, FOLLOWERS: "cut-link: every link on which a follower fetches from the leader of its partition"}


def _summary(link: LinkName) -> str:
    target = link.target.removeprefix("b")
    if link.opener in LOAD_GROUPS:
        return f"requests of the load's {link.opener} to broker {target}, and their responses"
    opener = link.opener.removeprefix("b")
    if link.target == ZOOKEEPER:
        return f"broker {opener}'s session with ZooKeeper"
    return f"broker {opener}'s requests to broker {target}: fetches as its follower, any others as controller"


def _mark(fault: type[Fault]) -> str:
    """A mark for a fault that is in the default set, or that needs a certain load."""
    if (needs := fault.needs_of_workload()) is not None:
        return f" (needs a workload with {needs})"
    return f" ({DEFAULT})" * (fault.name in GROUPS[DEFAULT])


def _entries(what: What) -> dict[str, str]:
    if what is What.FAULTS:
        return {name: f"{fault.summary}{_mark(fault)}" for name, fault in FAULTS.items()}
    if what is What.CHECKS:
        from verifier.checks import CHECKS

        return {check.name: check.summary for check in CHECKS}
    if what is What.DEFECTS:
        return {name: defect.doc for name, defect in CATALOGUE.items()}
    if what is What.PROFILES:
        return {name: profile.doc for name, profile in profiles.PROFILES.items()}
    if what is What.SWARMS:
        return {name: swarm.summary for name, swarm in SWARMS.items()}
    if what is What.SCENARIOS:
        from chaos.scenarios.catalogue import scenarios

        return {each.name: f"{each.title} ({each.source})" for each in scenarios()}
    if what is What.SWEEPS:
        from chaos.sweeps.catalogue import SWEEPS

        return {name: summary for name, (summary, _) in SWEEPS.items()}
    from loadgen.workloads import CATALOGUE as WORKLOADS

    return {name: workload.summary for name, workload in WORKLOADS.items()}
