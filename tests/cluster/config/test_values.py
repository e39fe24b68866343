"""The names of typed configurations."""

from __future__ import annotations

from cluster.config import values
from cluster.config.keys import TypedConfig


def test_at_run_time_there_is_one_class() -> None:
    """What mypy tells apart is the same to Python: a look-up is that of ``TypedConfig``, and costs no more."""
    kinds = (values.BrokerValues, values.TopicValues, values.ProducerValues, values.ConsumerValues, values.AdminValues)
    assert set(kinds) == {TypedConfig}
