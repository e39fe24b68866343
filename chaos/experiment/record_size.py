"""Checks whether the brokers and producers of a run accept the largest record that its load may draw. Pure.

Owns what is refused and what only gets a warning. Does not own the sizes and limits (``loadgen.limits``).
"""

from __future__ import annotations

from chaos.experiment.asked import Asked
from chaos.experiment.choices import DEFAULT_WORKLOAD
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import Experiment
from cluster.config import topic
from loadgen.limits import LargestRecord, advice, compresses, producer_limits, topic_limits, unless_compressed


def check_record_size(experiment: Experiment) -> list[str]:
    """Check before anything starts that every record can be written. Returns warnings; raises ExperimentError.

    A record that the producer itself refuses would block it forever, so that is refused. So is a record above a limit
    of the topic or the brokers that the user did not set. If the user set the limit, it may be intended (a run in which
    nothing is acknowledged is ``unknown``), and with compression the size of a batch is unknown in advance; these get a
    warning.
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
    """Whether an option sets this limit of the topic or the brokers, or a broker key from which it is derived."""
    names = {key, *(name for name, _ in topic.BROKER_SYNONYMS.get(key, ()))}
    return any(pair.partition("=")[0].strip() in names for pair in (*asked.topic_config, *asked.broker_config))
