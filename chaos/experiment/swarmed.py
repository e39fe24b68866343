"""An experiment whose faults and settings a profile of swarms draws from the seed. Pure.

Owns which options the drawn values stand for, and that what was asked for wins. The draws are
``chaos.schedules.swarm``'s.
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
from chaos.schedules.profiles import PROFILES, SwarmProfile
from chaos.schedules.swarm import Draw, draw, draw_settings
from cluster.config import profiles
from cluster.config.keys import suggestion
from loadgen.workload import Workload

#: Other names under which librdkafka takes a drawn key.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "acks": ("request.required.acks",),
    "linger.ms": ("queue.buffering.max.ms",),
    "max.in.flight.requests.per.connection": ("max.in.flight",),
    "compression.type": ("compression.codec",),
}


def base_of(name: str) -> profiles.Profile:
    """The base configuration of a profile of either kind. Raises ExperimentError with the nearest name."""
    if name in PROFILES:
        return profiles.find(PROFILES[name].base)
    if name not in profiles.PROFILES:
        known = {**profiles.PROFILES, **PROFILES}
        hint = suggestion(name, known) or f"; known profiles: {', '.join(known)}"
        raise ExperimentError(f"unknown profile '{name}'{hint}")
    return profiles.find(name)


def over(drawn: Drawn, asked: Asked) -> Asked:
    """The options with what was drawn in them."""
    producers = {key: value for key, value in drawn.producers.items() if key != "acks"}
    return replace(
        asked,
        acks=drawn.producers.get("acks", asked.acks),
        producer_config=(*asked.producer_config, *pairs(producers)),
        topic_config=(*asked.topic_config, *pairs(drawn.topic)),
    )


def drawn_for(asked: Asked, workload: Workload) -> Drawn | None:
    """What the profile draws for this run; None if it draws nothing. Raises ExperimentError.

    A schedule that was given replaces the drawn faults; the settings are drawn nevertheless.
    """
    profile = PROFILES.get(asked.profile)
    if profile is None:
        return None
    for option, given in (("--faults", asked.faults is not None), ("--overlap", asked.overlap)):
        if given:
            raise ExperimentError(
                f"--profile {profile.name} and {option} are mutually exclusive: it draws the faults from the seed"
            )
    producers, topic = _settings(profile, asked, workload, loses=False)
    # segments that are drawn small are closed soon: what needs closed ones is then possible
    kinds = possible(replace(asked, topic_config=(*asked.topic_config, *pairs(topic))), workload, profile)
    if not kinds and asked.schedule is None:
        raise ExperimentError(f"--profile {profile.name}: none of its faults can bite in this run; use another profile")
    drawn = draw(profile, kinds, seed=asked.seed, warmup_s=WARMUP_S, time_limit_s=asked.time_limit_s)
    # what repeats batches needs acks=all, too
    planned = [FAULTS[name] for name in _planned(asked, drawn)]
    loses = any(fault.loses_data or fault.needs_idempotence for fault in planned)
    producers, topic = _settings(profile, asked, workload, loses=loses)
    return Drawn(drawn, producers, topic)


def possible(asked: Asked, workload: Workload, profile: SwarmProfile) -> list[FaultKind]:
    """The kinds of the profile that can bite in this run."""
    names = (name for name in FAULTS if profile.has(name))
    return [FAULTS[name].kind() for name in names if impossible(name, asked, workload) is None]


def _planned(asked: Asked, drawn: Draw) -> Iterable[str]:
    return drawn.kinds if asked.schedule is None else asked.schedule.schedule.kinds()


def _settings(
    profile: SwarmProfile, asked: Asked, workload: Workload, *, loses: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """The drawn keys that no option and no workload decides."""
    largest = workload.sizes.most
    producers, topic = draw_settings(profile, seed=asked.seed, largest_bytes=largest, loses=loses)
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
