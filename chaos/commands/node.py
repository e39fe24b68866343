"""``gapless broker`` and ``gapless proxy``: one part alone, in the foreground, for containers and other hosts."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from chaos.exits import BadRequest, Exit
from cluster.config.broker import validate
from cluster.config.errors import ConfigError
from cluster.config.properties import from_environment, parse_properties
from cluster.process.one_line import reason
from loadgen.documents import DocumentError, read_text


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command("broker", help="Run one broker in the foreground, like kafka-server-start.sh.")(broker)
    app.command("proxy", help="Run the built-in proxy, a server of Toxiproxy's API, in the foreground.")(proxy)


def broker(
    config: Annotated[
        Path | None, typer.Option(help="A server.properties file. KAFKA_... environment variables override it.")
    ] = None,
    node_directory: Annotated[
        Path, typer.Option(help="Directory for control.jsonl and defects.jsonl. The log goes to stderr.")
    ] = Path("."),
    defect: Annotated[
        list[str] | None, typer.Option(help="Plant a known bug in the brokers: NAME[:probability].")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for everything random in the broker.")] = 0,
) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    from cluster.broker.control.membership.membership import BrokerIdTaken
    from cluster.broker.main import BrokerFailed, BrokerSpec, StoppedEarly, serve_alone
    from cluster.log.errors import LogError

    properties = _properties(config)
    try:
        config_read = validate(properties)
        broker_id, _ = config_read.broker_id, config_read.zookeeper_connect
    except ConfigError as error:
        raise BadRequest(f"{_source(str(error), config)}{error}") from error
    try:
        serve_alone(BrokerSpec(broker_id, properties, str(node_directory), tuple(defect or ()), seed))
    except StoppedEarly as error:
        print(f"gapless: interrupted: the broker was {error}", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except (BrokerFailed, TimeoutError) as error:
        print(f"gapless: the broker failed: {error}", file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    except OSError as error:
        raise BadRequest(f"{error.filename or 'the broker'}: {reason(error)}") from error
    except LogError as error:
        raise BadRequest(error.message) from error
    except (ConfigError, BrokerIdTaken, ValueError) as error:
        raise BadRequest(str(error)) from error
    return int(Exit.VALID)


def _properties(config: Path | None) -> dict[str, str]:
    """The properties from the file and the environment. Raises BadRequest, which names the file."""
    try:
        properties = {} if config is None else parse_properties(read_text(config))
    except (ConfigError, DocumentError) as error:
        raise BadRequest(f"--config {config}: {error}") from error
    return properties | from_environment(os.environ)


def _source(wrong: str, config: Path | None) -> str:
    """Where the setting in an error message is: an environment variable, or the file."""
    named = [
        name
        for name, value in os.environ.items()
        if any(f"'{key}'" in wrong for key in from_environment({name: value}))
    ]
    if named:
        return f"{named[0]}: "
    return "" if config is None else f"--config {config}: "


def proxy(
    host: Annotated[str, typer.Option(help="Address of the API.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0: a free port.")] = 8474,
    seed: Annotated[int, typer.Option(help="Seed for toxicity, jitter and slicing.")] = 0,
    config: Annotated[
        Path | None, typer.Option(help="Proxies to create at startup: a JSON file in Toxiproxy's format.")
    ] = None,
) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    from chaos.proxy.registry import PopulateError
    from chaos.proxy.server import run

    try:
        proxies = None if config is None else config.read_bytes()
    except OSError as error:
        raise BadRequest(f"--config {config} cannot be read: {reason(error)}") from error
    try:
        asyncio.run(
            run(
                host, port, seed, lambda bound: print(f"listening on {host}:{bound}", file=sys.stderr), populate=proxies
            )
        )
    except OSError as error:
        raise BadRequest(f"{host}:{port} cannot be used: {reason(error)}; pick another --port or --host") from error
    except PopulateError as error:
        raise BadRequest(f"--config {config} is not a list of proxies in Toxiproxy's JSON format: {error}") from error
    return int(Exit.VALID)
