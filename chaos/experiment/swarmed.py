"""Draws the faults and settings of an experiment from a swarm, by the seed. Pure.

Owns which options the drawn values replace; options that were given are kept. Does not own the draws
(``chaos.schedules.swarm``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from chaos.experiment.asked import Asked
from chaos.experiment.drawn import Drawn, pairs
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import WARMUP_S
from chaos.experiment.planned import impossible
from chaos.faults.catalogue import FAULTS
from chaos.schedules.kinds import FaultKind
from chaos.schedules.swarm import Draw, draw, draw_settings
from chaos.schedules.swarms import SWARMS, Swarm
from cluster.config import profiles
from cluster.config.keys import suggestion
from loadgen.workload import Workload

#: Drawn key -> other names of it that librdkafka accepts.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "acks": ("request.required.acks",),
    "linger.ms": ("queue.buffering.max.ms",),
    "max.in.flight.requests.per.connection": ("max.in.flight",),
    "compression.type": ("compression.codec",),
}


def renamed(asked: Asked) -> tuple[Asked, list[str]]:
    """The options with a swarm that was given as ``--profile`` (as in older versions) moved to ``--swarm``.

    Also returns a line about that. Raises ExperimentError for two swarms.
    """
    if asked.profile not in SWARMS:
        return asked, []
    if asked.swarm not in (None, asked.profile):
        raise ExperimentError(
            f"--profile {asked.profile} is --swarm {asked.profile}, and --swarm {asked.swarm} is another"
        )
    line = f"--profile {asked.profile} is deprecated: it is --swarm {asked.profile} now"
    return replace(asked, swarm=asked.profile, profile=SWARMS[asked.profile].base), [line]


def base_of(asked: Asked) -> profiles.Profile:
    """The profile. Raises ExperimentError for an unknown one, and for one that the swarm does not extend."""
    if asked.profile not in profiles.PROFILES:
        known = profiles.PROFILES
        hint = suggestion(asked.profile, known) or f"; known profiles: {', '.join(known)}"
        raise ExperimentError(f"unknown profile '{asked.profile}'{hint}")
    swarm = swarm_of(asked)
    if swarm is not None and asked.profile != swarm.base:
        raise ExperimentError(f"--swarm {swarm.name} needs --profile {swarm.base}; leave --profile {asked.profile} out")
    return profiles.find(asked.profile)


def swarm_of(asked: Asked) -> Swarm | None:
    """The requested swarm, if any. Raises ExperimentError, which suggests the nearest name."""
    if asked.swarm is None:
        return None
    if asked.swarm not in SWARMS:
        hint = suggestion(asked.swarm, SWARMS) or f"; known swarms: {', '.join(SWARMS)}"
        raise ExperimentError(f"unknown swarm '{asked.swarm}'{hint}")
    return SWARMS[asked.swarm]


def over(drawn: Drawn, asked: Asked) -> Asked:
    """The options with the drawn settings added."""
    producers = {key: value for key, value in drawn.producers.items() if key != "acks"}
    return replace(
        asked,
        acks=drawn.producers.get("acks", asked.acks),
        producer_config=(*asked.producer_config, *pairs(producers)),
        topic_config=(*asked.topic_config, *pairs(drawn.topic)),
    )


def drawn_for(asked: Asked, workload: Workload) -> Drawn | None:
    """What the swarm draws for this run; None without a swarm. Raises ExperimentError.

    A given schedule replaces the drawn faults; the settings are drawn anyway.
    """
    swarm = swarm_of(asked)
    if swarm is None:
        return None
    for option, given in (("--faults", asked.faults is not None), ("--overlap", asked.overlap)):
        if given:
            raise ExperimentError(
                f"--swarm {swarm.name} and {option} are mutually exclusive: it draws the faults from the seed"
            )
    producers, topic = _settings(swarm, asked, workload, loses=False)
    # if small segments are drawn, faults that need closed segments become possible
    kinds = possible(replace(asked, topic_config=(*asked.topic_config, *pairs(topic))), workload, swarm)
    if not kinds and asked.schedule is None:
        raise ExperimentError(f"--swarm {swarm.name}: none of its faults can bite in this run; use another swarm")
    drawn = draw(swarm, kinds, seed=asked.seed, warmup_s=WARMUP_S, time_limit_s=asked.time_limit_s)
    # faults that repeat batches need acks=all, too
    planned = [FAULTS[name] for name in _planned(asked, drawn)]
    loses = any(fault.loses_data or fault.needs_idempotence for fault in planned)
    producers, topic = _settings(swarm, asked, workload, loses=loses)
    return Drawn(drawn, producers, topic)


def possible(asked: Asked, workload: Workload, swarm: Swarm) -> list[FaultKind]:
    """The kinds of the swarm that can bite in this run."""
    names = (name for name, fault in FAULTS.items() if swarm.has(name) and not fault.by_name_alone)
    return [FAULTS[name].kind() for name in names if impossible(name, asked, workload) is None]


def _planned(asked: Asked, drawn: Draw) -> Iterable[str]:
    return drawn.kinds if asked.schedule is None else asked.schedule.schedule.kinds()


def _settings(swarm: Swarm, asked: Asked, workload: Workload, *, loses: bool) -> tuple[dict[str, str], dict[str, str]]:
    """The drawn settings of producers and topic, without those that an option or the workload sets."""
    largest = workload.sizes.most
    producers, topic = draw_settings(swarm, seed=asked.seed, largest_bytes=largest, loses=loses)
    given = _keys(asked.producer_config)
    if asked.acks is not None or asked.idempotence is not None or workload.is_transactional:
        given.add("acks")
    if "enable.idempotence" in given or workload.members is not None:
        given.add("acks")
    if workload.compression is not None:
        given.add("compression.type")
    kept = {key: value for key, value in producers.items() if not given & {key, *_ALIASES.get(key, ())}}
    return kept, {key: value for key, value in topic.items() if key not in _keys(asked.topic_config)}


def _keys(pairs: Iterable[str]) -> set[str]:
    return {pair.partition("=")[0].strip() for pair in pairs}
