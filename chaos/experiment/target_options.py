"""The options for a cluster that gapless did not start: ``--target``, ``--replica-dir`` and ``--nodes``. Pure.

Owns their syntax, and which options are mutually exclusive. Connects to nothing (the conductor does).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from loadgen.workload import Workload

#: The prefix of a run's topic in a cluster that gapless did not start; the seed follows.
OWN_TOPIC = "gapless"
SCHEME = "kafka://"
_FORM = "--target takes kafka://HOST:PORT,HOST:PORT,..."


def own_topic(asked: Asked) -> str:
    """The name of the topic that a run creates in such a cluster, and deletes at the end."""
    return f"{OWN_TOPIC}-{asked.seed}"


def target_addresses(text: str) -> list[str]:
    """The ``host:port`` addresses of ``--target``. Raises ExperimentError."""
    if not text.startswith(SCHEME):
        raise ExperimentError(f"{_FORM}, not {text!r}")
    # imported here, because it loads the protocol, which most commands do not need
    from cluster.client.retried_calls import parse_address

    addresses = text.removeprefix(SCHEME).rstrip("/").split(",")
    for address in addresses:
        try:
            parse_address(address)
        except ValueError as error:
            raise ExperimentError(f"{_FORM}: {error}") from None
    return addresses


def replica_directories(asked: Asked) -> Mapping[int, Path]:
    """The data directories of brokers, by broker id. Raises ExperimentError."""
    found: dict[int, Path] = {}
    for text in asked.replica_dirs:
        broker, separator, path = text.partition("=")
        if not separator or not broker.isdecimal() or not path:
            raise ExperimentError(f"--replica-dir takes ID=DIR (1=/var/lib/kafka/data), not {text!r}")
        if int(broker) in found:
            raise ExperimentError(f"--replica-dir names broker {broker} twice; leave one of them out")
        found[int(broker)] = Path(path)
    return found


def check_workload(asked: Asked, workload: Workload) -> None:
    """Raises ExperimentError for a load with a group, because the group's offsets would stay in the cluster."""
    if asked.target is not None and workload.members is not None:
        raise ExperimentError(
            f"--workload {workload.name} has a consumer group, whose offsets would stay in the cluster of --target for "
            "the next run; use a workload without groups"
        )


def check_target(asked: Asked) -> None:
    """Raises ExperimentError for options that do not work with ``--target``, or only with it."""
    if asked.target is None:
        for option, given in (("--replica-dir", asked.replica_dirs), ("--nodes", asked.nodes)):
            if given:
                raise ExperimentError(f"{option} works only with --target; add --target or leave {option} out")
        return
    target_addresses(asked.target)
    replica_directories(asked)
    others = {
        "--defect": (asked.defects, "plant it where the brokers are started"),
        "--zookeeper": (asked.zookeeper, "leave it out"),
    }
    for option, (given, fix) in others.items():
        if given:
            raise ExperimentError(f"{option} works only with brokers that gapless starts, not with --target; {fix}")
