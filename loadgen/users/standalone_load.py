"""The first and last steps of a standalone load: its topic, the notes for the verifier, and reading back.

Owns these steps under Locust. In a run of the conductor, nothing here is called. Does not own how records are read back
(``loadgen.read_back``).
"""

from __future__ import annotations

import logging
import platform
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from locust.runners import WorkerRunner

from loadgen.topics import ensure_topic, positions, too_large_for_topic, topic_config
from loadgen.users.options import ResolvedOptions, source_of_sizes
from verifier.evidence.standalone import LoadStart

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Beginning:
    """A load whose cluster has answered. ``begins`` has the offset of each partition from which readers read."""

    options: ResolvedOptions
    begins: Mapping[int, int] = field(default_factory=dict)


def begin(bootstrap: str, options: ResolvedOptions, parsed: Namespace, runner: Any) -> Beginning:
    """Find or create the topic, and note how the load begins. Blocks. Raises ``SettingsError`` or ``OSError``."""
    settings = ensure_topic(bootstrap, options.settings)
    settings = settings.with_changes({"producers_bootstrap": bootstrap, "readers_bootstrap": bootstrap})
    if (warning := too_large_for_topic(bootstrap, settings, source_of_sizes(parsed, settings))) is not None:
        logger.warning("%s", warning)
    logs = positions(bootstrap, settings.topic, settings.partitions)
    settings.write(options.run.load_settings_json)
    LoadStart(
        process=options.process,
        machine=platform.node(),
        workers=getattr(parsed, "kafka_workers", None) if isinstance(runner, WorkerRunner) else None,
        run_id=settings.run_id,
        topic=settings.topic,
        client=settings.client,
        acks=settings.acks,
        idempotence=settings.idempotence,
        ends={partition: log.end for partition, log in logs.items()},
        topic_config=topic_config(bootstrap, settings.topic),
    ).write(options.run)
    return Beginning(replace(options, settings=settings), {partition: log.begin for partition, log in logs.items()})


def read_back(run: Path) -> None:
    """Read back what was written, in a process without Locust's sockets. A signal to this process ends it, too."""
    child = subprocess.Popen([sys.executable, "-m", "loadgen.read_back", str(run)], stdin=subprocess.DEVNULL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: child.terminate())
    child.wait()
