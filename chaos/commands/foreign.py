"""``gapless run --target``: examines the cluster that a run is to use, before the options are resolved.

Owns this check and its refusals. ``run.json`` has what was found as if options had requested it: the number of brokers,
and the brokers' settings on which a verdict depends. Does not own the requests (``chaos.conductor.target_look``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chaos.conductor.nodes import ForeignNodes
from chaos.conductor.nodes_file import NodesError
from chaos.conductor.target_look import NotSeen, SeenTarget, look
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import FIELDS
from chaos.experiment.errors import ExperimentError
from chaos.experiment.target_options import check_target, own_topic, replica_directories, target_addresses
from cluster.seams.asyncio_transport import AsyncioTransport
from loadgen.documents import DocumentError, read_text


def fitted_to_target(asked: Asked) -> Asked:
    """The options, with what the target reports about itself. Unchanged without ``--target``. Raises BadRequest."""
    try:
        check_target(asked)
    except ExperimentError as error:
        raise BadRequest(str(error)) from error
    if asked.target is None:
        return asked
    if asked.broker_config:
        raise BadRequest(
            f"--broker-config {asked.broker_config[0]}: gapless does not start the brokers of --target; "
            "leave it out, and configure them where they are started"
        )
    try:
        found = asyncio.run(look(target_addresses(asked.target), AsyncioTransport()))
    except NotSeen as error:
        raise BadRequest(f"--target {asked.target}: {error}") from error
    return fitted(asked, found)


def fitted(asked: Asked, found: SeenTarget) -> Asked:
    """The options with the cluster's number of brokers and settings. Raises BadRequest if they contradict it."""
    brokers = sorted(found.addresses)
    if asked.brokers not in (FIELDS["brokers"].default, len(brokers)):
        raise BadRequest(f"--brokers {asked.brokers}: the cluster of --target has {len(brokers)}; leave it out")
    if (topic := own_topic(asked)) in found.topics:
        raise BadRequest(
            f"--target {asked.target} already has a topic {topic}, which the run would create; delete it if it is left "
            "over from a run that was killed, or give another --seed"
        )
    known: dict[tuple[int, int], int] = {}
    for broker, place in replica_directories(asked).items():
        if broker not in brokers:
            raise BadRequest(f"--replica-dir {broker}={place}: the cluster has brokers {', '.join(map(str, brokers))}")
        if not place.is_dir():
            raise BadRequest(
                f"--replica-dir {broker}={place}: there is no such directory; give one of the broker's log.dirs"
            )
        told = _meta_properties(place)
        if (owner := told.get("node.id", told.get("broker.id"))) not in (None, str(broker)):
            raise BadRequest(f"--replica-dir {broker}={place}: its meta.properties names broker {owner}")
        cluster = told.get("cluster.id", found.cluster_id)
        if found.cluster_id is not None and cluster != found.cluster_id:
            raise BadRequest(
                f"--replica-dir {broker}={place}: its meta.properties names cluster {cluster}, and --target is "
                f"{found.cluster_id}; give a directory of this cluster"
            )
        if (other := known.setdefault(_identity(place), broker)) != broker:
            raise BadRequest(f"--replica-dir {broker}={place}: this directory was also given for broker {other}")
    if asked.nodes is not None:
        _check_nodes(asked.nodes, brokers)
    config = tuple(f"{name}={value}" for name, value in found.settings.items())
    return replace(asked, brokers=len(brokers), broker_config=config)


def _check_nodes(path: str, brokers: Sequence[int]) -> None:
    """Raises BadRequest unless the ``--nodes`` file names every broker and passes its checks."""
    try:
        nodes = ForeignNodes.of(path)
        if absent := [broker for broker in brokers if broker not in nodes.known]:
            raise BadRequest(f"--nodes {path} does not name broker {absent[0]}; add it to 'nodes'")
        nodes.check(brokers)
    except NodesError as error:
        raise BadRequest(str(error)) from error


def _meta_properties(place: Path) -> dict[str, str]:
    """The broker and cluster that Kafka noted in this data directory (``meta.properties``); empty if it has none."""
    try:
        lines = read_text(place / "meta.properties").splitlines()
    except DocumentError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}


def _identity(place: Path) -> tuple[int, int]:
    """Identifies a directory even under another path or mount, since a replica must not be compared with itself."""
    status = place.stat()
    return status.st_dev, status.st_ino
