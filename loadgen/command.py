"""Makes the command lines of the load's processes, and writes the settings file that they read. Starts nothing.

Producers and readers are separate Locust processes, because each group of clients has its own links to the brokers.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.process.safe_path import package_environment
from loadgen.group_plan import parse_members
from loadgen.settings import (
    PROCESS_ENV,
    PRODUCERS,
    READERS,
    RUN_DIRECTORY_ENV,
    SETTINGS_ENV,
    LoadSettings,
    SettingsError,
)
from verifier.evidence.run_directory import RunDirectory

#: The module that runs Locust without its default configuration files.
LOCUST = "loadgen.users.program"
LOCUSTFILE = Path(__file__).resolve().with_name("locustfile.py")
#: How much longer Locust waits than its users need to finish, in seconds.
STOP_MARGIN_S = 10
#: The web interface has no login, so only users of this machine may reach it.
WEB_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Command:
    """One process: its name (also of its history), its arguments, its whole environment and where it runs.

    What Locust writes by itself is written to its working directory: it gets one of ours.
    It is ended by SIGINT and is gone at the latest ``stop_timeout_s`` later; SIGTERM does the same without the HTML.
    """

    name: str
    argv: list[str]
    env: dict[str, str]
    stop_timeout_s: float
    cwd: str | None = None


def settings_path(run: RunDirectory) -> Path:
    """The settings file that ``locust_commands`` writes and all tools of the load read."""
    return run.loadgen_dir / "settings.json"


def locust_commands(settings: LoadSettings, run: RunDirectory, web_port: int | None = None) -> list[Command]:
    """Write the settings file and give one command per load process (none for a group without users).

    With a ``web_port`` (0: a free one) the first producers' process has Locust's web interface, told in ``web.json``.

    Raises ``SettingsError`` if a group has users and no bootstrap address, ``OSError`` if the file cannot be written.
    """
    settings.write(settings_path(run))
    for group, users, bootstrap in (
        (PRODUCERS, settings.producers, settings.producers_bootstrap),
        (READERS, len(settings.readers), settings.readers_bootstrap),
    ):
        if users and not bootstrap:
            raise SettingsError(f"{group}_bootstrap is empty")
    commands = []
    no_readers = ("--kafka-readers", "0")
    for name, first_stream, producers in shares(settings):
        own = ["--kafka-first-stream", str(first_stream), *no_readers]
        users = producers // settings.streams_per_user
        commands.append(_command(name, "ProducerUser", users, settings.producers_bootstrap, settings, run, *own))
    for name, clients in readers(settings):
        own = ["--kafka-readers", ",".join(clients)]
        address = settings.readers_bootstrap
        commands.append(_command(name, "ReaderUser", len(clients), address, settings, run, *own))
    if settings.members is not None:
        members = parse_members(settings.members)
        for name, _, count in members.processes():
            address = settings.readers_bootstrap
            commands.append(_command(name, members.user_class, count, address, settings, run, *no_readers))
    if web_port is not None and settings.producers:
        commands[0] = _with_web(commands[0], web_port)
    return commands


def _with_web(command: Command, port: int) -> Command:
    """The same process with Locust's web interface. The load still starts without anyone's action."""
    argv = [each for each in command.argv if each != "--headless"]
    web = ["--autostart", "--web-host", WEB_HOST, "--web-port", str(port)]
    return replace(command, argv=[*argv, *web])


def shares(settings: LoadSettings) -> list[tuple[str, int, int]]:
    """The producers' processes: name, first stream and number of streams of each, as even as possible. Pure."""
    each = settings.streams_per_user
    users = settings.users
    processes = settings.producer_processes
    found = []
    for index in range(processes):
        first = users * index // processes
        count = users * (index + 1) // processes - first
        name = PRODUCERS if processes == 1 else f"{PRODUCERS}-{index + 1}"
        found.append((name, settings.first_stream + first * each, count * each))
    return found


def readers(settings: LoadSettings) -> list[tuple[str, tuple[str, ...]]]:
    """The live readers' processes, one per client: name, and the client of each of its readers. Pure."""
    clients = dict.fromkeys(settings.readers)
    return [(f"{READERS}-{client}", (client,) * settings.readers.count(client)) for client in clients]


def sentinel_command(run: RunDirectory, bootstrap: str, deadline_s: float, client: str = "confluent") -> list[str]:
    """The command of the final phase's first tool (``loadgen.sentinel``), which writes ``history/sentinel.arrow``."""
    return [*_tool("loadgen.sentinel", run, bootstrap, deadline_s, client), "--history", str(run.history("sentinel"))]


def final_read_command(
    run: RunDirectory,
    bootstrap: str,
    through_json: str,
    deadline_s: float,
    client: str = "confluent",
    stall_s: float | None = None,
) -> list[str]:
    """The command of the second tool (``loadgen.final_read``), which writes ``history/final-<client>.arrow``."""
    tool = _tool("loadgen.final_read", run, bootstrap, deadline_s, client)
    patience = [] if stall_s is None else ["--stall-s", str(stall_s)]
    return [*tool, "--history", str(run.history(f"final-{client}")), "--through", through_json, *patience]


def _tool(module: str, run: RunDirectory, bootstrap: str, deadline_s: float, client: str) -> list[str]:
    shared = ["--settings", str(settings_path(run)), "--bootstrap", bootstrap, "--deadline-s", str(deadline_s)]
    return [sys.executable, "-m", module, *shared, "--client", client]


def _command(
    name: str, user_class: str, users: int, bootstrap: str, settings: LoadSettings, run: RunDirectory, *options: str
) -> Command:
    stop_timeout_s = settings.flush_timeout_s + STOP_MARGIN_S
    output = run.loadgen_dir / name
    argv = [
        *(sys.executable, "-m", LOCUST, "--locustfile", str(LOCUSTFILE), user_class, "--headless"),
        *("--host", bootstrap, "--users", str(users), "--spawn-rate", str(min(users, 100))),
        *("--stop-timeout", f"{stop_timeout_s:g}", "--exit-code-on-error", "0", "--only-summary"),
        *("--csv", str(output), "--html", f"{output}.html", "--json-file", str(output), "--loglevel", "INFO"),
        *options,
    ]
    # a LOCUST_* variable from the user's shell would change the run
    env = {key: value for key, value in os.environ.items() if not key.startswith("LOCUST_")}
    # glibc gives each thread of librdkafka an arena of its own, and each grows to its own peak: an outage makes the
    # process larger for good. A setting of the user's stays.
    env.setdefault("MALLOC_ARENA_MAX", "2")
    env.update(
        {
            SETTINGS_ENV: str(settings_path(run)),
            RUN_DIRECTORY_ENV: str(run.path),
            PROCESS_ENV: name,
            "PYTHONUNBUFFERED": "1",
            **package_environment(Path(__file__).resolve().parent.parent),
        }
    )
    return Command(name, argv, env, stop_timeout_s + STOP_MARGIN_S, str(run.loadgen_dir))
