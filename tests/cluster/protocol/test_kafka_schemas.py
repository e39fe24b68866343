"""The door to kafka-python lets no warning out, in a process where nothing else has imported it yet."""

from __future__ import annotations

import subprocess
import sys


def test_messages_can_be_imported_where_warnings_are_errors():
    """kafka-python reads its schemas with a call that Python 3.11 calls deprecated; that is nobody's concern."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import cluster.protocol.messages"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_kafka_python_is_loaded_whole_when_it_is_used():
    """The schemas alone load no client of kafka-python's; whoever wants one imports it as ever."""
    program = (
        "import sys, cluster.protocol.messages\n"
        "assert 'kafka.admin' not in sys.modules\n"
        "import kafka\n"
        "from kafka import KafkaProducer\n"
        "assert kafka.KafkaConsumer is sys.modules['kafka.consumer.group'].KafkaConsumer\n"
        "assert kafka.protocol.admin is cluster.protocol.kafka_schemas.admin\n"
        "assert kafka.__version__ and not hasattr(kafka, 'nothing')\n"
    )
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
