"""Whether the brokers and the producers of a run take the largest record that its load may draw. Pure.

Owns what is refused and what only warned about; the sizes and the limits are ``loadgen.limits``'s.
"""

from __future__ import annotations

from chaos.experiment.asked import Asked
from chaos.experiment.choices import DEFAULT_WORKLOAD
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import Experiment
from cluster.config import topic
from loadgen.limits import LargestRecord, advice, compresses, producer_limits, topic_limits, unless_compressed


def check_record_size(experiment: Experiment) -> list[str]:
    """Refuse a load of which a record can never be written, before anything is started; warnings for people.

    What a producer does not take blocks it forever. A limit of the topic or of the brokers that was not asked
    for is an oversight; one that was asked for may be the very point (a run in which nothing is acknowledged is
    ``unknown``), and whether a compressed batch keeps to it is seen only when it is there: those get a warning.
    Raises ExperimentError.
    """
    asked, workload = experiment.asked, experiment.workload
    producer_config = experiment.producer_config.as_text()
    largest = LargestRecord.of(workload.sizes, workload.key_choice)
    source = f"--workload {asked.workload or DEFAULT_WORKLOAD}"
    if asked.record_bytes is not None:
        source = f"--record-bytes {asked.record_bytes}"
    limits = topic_limits(experiment.topic_config, experiment.broker_config, largest)
    is_compressed = compresses(producer_config)
    doubtful = [each for each in limits if is_compressed or _is_asked_for(each.key, asked)]
    certain = [each for each in limits if each not in doubtful]
    own = producer_limits(asked.client, producer_config, largest)
    if (refusal := advice(source, [*own, *certain], largest)) is not None:
        raise ExperimentError(refusal)
    warning = advice(source, doubtful, largest)
    return [] if warning is None else [unless_compressed(warning, producer_config)]


def _is_asked_for(key: str, asked: Asked) -> bool:
    """Whether someone set this limit of the topic's or of the brokers', or the broker's key that comes after it."""
    names = {key, *(name for name, _ in topic.BROKER_SYNONYMS.get(key, ()))}
    return any(pair.partition("=")[0].strip() in names for pair in (*asked.topic_config, *asked.broker_config))
