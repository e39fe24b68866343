"""``gapless load``: Standalone Locust against any cluster, the plain way in. Owns the command line that it becomes.

Does not own the load (``loadgen.locustfile``, docs/load.md) or reading back (``loadgen.read_back``). This process
replaces itself by one of them, which then handles signals and sets the exit status.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.received import check_continued
from chaos.exits import BadRequest
from cluster.process.safe_path import package_environment
from loadgen.command import LOCUST, LOCUSTFILE, WEB_HOST
from loadgen.hosts import checked_host
from loadgen.settings import SettingsError
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.standalone import is_load_by_hand

HELP = """Run a standalone Locust load against any Kafka cluster and record what its clients saw.

Histories go to results/locust. At the end, the load reads everything back for 'gapless verify results/locust/...' to
judge. Takes all options of Locust, such as --run-time 60s --users 9, and these: --kafka-topic, --kafka-partitions,
--kafka-replication-factor, --kafka-rate, --kafka-value-bytes, --kafka-client, --kafka-readers, --kafka-run-id,
--kafka-first-stream, --kafka-flush-timeout, --kafka-workload, --kafka-producer-config, --kafka-consumer-config,
--kafka-settings, --kafka-process, --kafka-run-directory, --kafka-read-back, --kafka-results. --options and
docs/load-options.md explain each.
"""
#: With one of these options, Locust must not run headless: it shows a page or help, or waits for its master.
_NO_HEADLESS = ("--headless", "--worker", "--help", "-h")


def register(app: typer.Typer) -> None:
    """Add the command."""
    extra = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("load", help=HELP, context_settings=extra)(load)


def load(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(metavar="HOST:PORT[,...]", help="Bootstrap servers of the cluster.")
    ] = None,
    web: Annotated[
        bool, typer.Option("--web", help="Start and watch the load in Locust's web UI, on 127.0.0.1.")
    ] = False,
    read_back: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Only read back a previous load, whose cluster was down or which ran on several hosts.",
        ),
    ] = None,
    options: Annotated[bool, typer.Option("--options", help="Print all Locust and load options, and exit.")] = False,
) -> int:
    """Become Locust, or the program that reads back."""
    if read_back is not None:
        program = ["loadgen.read_back", *reading_arguments(read_back, host, context.args, web=web)]
    elif options:
        program = ["loadgen.users.command_line"]
    else:
        program = [LOCUST, "--locustfile", str(LOCUSTFILE), *arguments(host, context.args, web=web)]
    environment = {**os.environ, **package_environment(LOCUSTFILE.parent.parent)}
    # as in the load of a run: otherwise each of librdkafka's threads has a malloc arena that grows with each outage
    environment.setdefault("MALLOC_ARENA_MAX", "2")
    argv = [sys.executable, "-m", *program]
    sys.stdout.flush()
    os.execve(sys.executable, argv, environment)


def reading_arguments(directory: Path, host: str | None, others: Sequence[str], *, web: bool) -> list[str]:
    """The arguments of what reads back. Raises BadRequest for an invalid host, no load, or options of a new load."""
    if others or web:
        raise BadRequest(f"--read-back only reads back a previous load: leave out {[*others, '--web'][0]}")
    if not is_load_by_hand(RunDirectory(directory)):
        raise BadRequest(f"--read-back {directory}: not the directory of a standalone load; pass one in results/locust")
    check_continued(directory)
    try:
        return [str(directory), *([] if host is None else ["--host", checked_host(host)])]
    except SettingsError as error:
        raise BadRequest(str(error)) from error


def arguments(host: str | None, others: Sequence[str], *, web: bool) -> list[str]:
    """Locust's arguments. Raises BadRequest for an invalid host."""
    words = list(others)
    is_paged = web or any(word == "--autostart" or word.startswith("--web-") for word in words)
    try:
        if host is not None:
            words += ["--host", checked_host(host)]
        elif "--worker" not in words:
            checked_host(os.environ.get("LOCUST_HOST", ""))
    except SettingsError as error:
        raise BadRequest(str(error)) from error
    if is_paged and not any(word.split("=")[0] == "--web-host" for word in words):
        # by default, Locust would serve its page to other machines, too
        words += ["--web-host", WEB_HOST]
    elif not is_paged and not set(words) & set(_NO_HEADLESS):
        words.append("--headless")
    return words
