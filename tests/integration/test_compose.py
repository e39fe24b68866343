"""docker-compose.yml: its form, and its very commands and environments as plain processes.

There is no Docker engine where these tests run. Each service gets a loopback address of its own in place of its
container's, so that the ports in the file can stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema
import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.commands.load import arguments
from cluster.config import broker
from cluster.config.properties import from_environment
from cluster.process.java import find_java
from cluster.process.processes import until
from cluster.process.supervisor import Child, Supervisor
from cluster.process.zookeeper import start_zookeeper
from tests.support.require import require

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCHEMA: dict[str, Any] = json.loads((ROOT / "tests" / "testdata" / "compose.schema.json").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
#: What `docker compose up` starts without a profile.
PLAIN = [name for name in SERVICES if "profiles" not in SERVICES[name]]
BROKERS = [name for name in SERVICES if name.startswith("kafka-")]
START_S = 90.0


def test_the_file_has_the_form_of_a_compose_file() -> None:
    """It passes the part of the Compose Specification that we use, strictly: a misspelt key is an error."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(COMPOSE, SCHEMA, jsonschema.Draft202012Validator)
    for key in ("version", "servces"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**COMPOSE, key: "3"}, SCHEMA, jsonschema.Draft202012Validator)


def test_ports_are_published_on_this_machine_alone() -> None:
    """Every published port is bound to 127.0.0.1, and none twice."""
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    assert len(set(published)) == len(published)
    assert all("network_mode" not in service for service in SERVICES.values())


def test_services_wait_for_what_they_need() -> None:
    """A dependency exists, has a health check where health is waited for, and none is circular."""
    for service in SERVICES.values():
        for name, wanted in service.get("depends_on", {}).items():
            assert name in SERVICES
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
    assert len(list(in_order())) == len(SERVICES)
    assert all("healthcheck" in SERVICES[name] for name in [*BROKERS, "zookeeper", "toxiproxy"])
    assert all(set(SERVICES[name].get("depends_on", {})) <= set(PLAIN) for name in PLAIN)


def test_profiles_add_load_and_metrics() -> None:
    """Each is asked for by name; what is mounted is there, and what Prometheus scrapes is what brokers are told."""
    assert {name: SERVICES[name]["profiles"] for name in SERVICES if name not in PLAIN} == {
        "load": ["load"],
        "prometheus": ["obs"],
        "grafana": ["obs"],
    }
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", []) if volume[0] == "."]
    assert len(mounts) == 4 and all((ROOT / mount.split(":")[0]).is_file() for mount in mounts)
    pages = ROOT / "docs" / "observability"
    scraped = yaml.safe_load((pages / "prometheus.yml").read_text())["scrape_configs"]
    targets = {each["job_name"]: each["static_configs"][0]["targets"] for each in scraped}
    configs = {name: broker.validate(from_environment(SERVICES[name]["environment"])) for name in BROKERS}
    assert targets["compose"] == [f"{name}:{config['gapless.metrics.port']}" for name, config in configs.items()]
    assert {config["gapless.metrics.host"] for config in configs.values()} == {"0.0.0.0"}
    source = yaml.safe_load((pages / "grafana-datasource.yml").read_text())["datasources"][0]
    assert source["url"] == f"http://prometheus:{SERVICES['prometheus']['ports'][0].rpartition(':')[2]}"


def test_the_load_of_the_file_is_a_command_that_there_is() -> None:
    """Its options are our own and Locust's, and its host is the brokers' inner listeners."""
    gapless, command, option, host, *others = SERVICES["load"]["command"]
    assert (gapless, command, option) == ("gapless", "load", "--host")
    assert host.split(",") == [f"{name}:19092" for name in BROKERS]
    words = arguments(host, others, web=False)
    assert words == [*others, "--host", host]
    assert {word for word in words if word[0] == "-"} == {"--host", "--headless", "--run-time"}


def test_brokers_are_configured_by_the_environment() -> None:
    """Each environment is a valid broker configuration; ids, addresses and links differ, and data is in a volume.

    Brokers meet in a network of their own, which no port is published from: the log says that nobody else may reach it.
    """
    configs = [broker.validate(from_environment(SERVICES[name]["environment"])) for name in BROKERS]
    assert [config.broker_id for config in configs] == [1, 2, 3]
    for config in configs:
        (warning,) = config.warnings
        assert warning.startswith("the brokers' own listener PLAINTEXT://0.0.0.0:19092 is not on the loopback")
    assert len({config["zookeeper.connect"] for config in configs}) == 3
    for name, config in zip(BROKERS, configs, strict=True):
        inner, outer = config.advertised_listeners
        assert (inner.host, inner.port) == (name, config.listeners[0].port)
        host, published, inside = SERVICES[name]["ports"][0].split(":")
        assert (outer.host, outer.port, config.listeners[1].port) == (host, int(published), int(inside))
        volume, place = SERVICES[name]["volumes"][0].split(":")
        assert volume in COMPOSE["volumes"]
        assert config.data_directory.startswith(place)


def test_the_image_holds_what_its_commands_need() -> None:
    """The Dockerfile copies every package, and nothing that .dockerignore keeps out."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {part for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE) for part in line.split()}
    assert copied == kept
    assert {"cluster", "chaos", "loadgen", "verifier"} <= copied
    assert re.search(r"^USER gapless$", dockerfile, re.MULTILINE)


def in_order() -> Iterator[str]:
    """Services, each after those it depends on."""
    done: list[str] = []
    while len(done) < len(SERVICES):
        ready = [
            name for name in SERVICES if name not in done and set(SERVICES[name].get("depends_on", {})) <= set(done)
        ]
        if not ready:
            return
        yield from ready
        done += ready


class Machine:
    """Runs services as processes: container names become loopback addresses, container paths directories."""

    def __init__(self, supervisor: Supervisor, directory: Path) -> None:
        self._supervisor = supervisor
        self._directory = directory
        # Of our own among all the tests that may run on this machine.
        block = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
        self.addresses = {name: f"{block}.{number}" for number, name in enumerate(SERVICES, start=1)}
        self.zookeeper = ""

    def translate(self, service: str, text: str) -> str:
        """A command's part or a variable's value, as it means the same here."""
        text = text.replace("zookeeper:2181", self.zookeeper)
        # What others connect to is another service's; what a service binds or probes is its own.
        own = self.addresses["toxiproxy" if service == "links" else service]
        for name, address in self.addresses.items():
            text = re.sub(rf"(?<![\w-]){name}(?=:\d)", address, text)
        text = text.replace("0.0.0.0", own)
        if service in BROKERS:
            text = text.replace("/var/lib/gapless", str(self._directory / service))
        return text

    def run(self, service: str, command: list[str], what: str = "") -> Child:
        """Start a command in the environment of a service."""
        given: Mapping[str, str] = SERVICES[service].get("environment", {})
        environment = {name: self.translate(service, value) for name, value in given.items()}
        # Locally imported code instead of the installed one: they are the same in the image.
        environment["PYTHONPATH"] = str(ROOT)
        gapless = [sys.executable, "-c", "import sys; from chaos.commands.main import main; sys.exit(main())"]
        argv = [self.translate(service, part) for part in command]
        argv = [*gapless, *argv[1:]] if argv[0] == "gapless" else [sys.executable, *argv[1:]]
        place = self._directory / service
        place.mkdir(exist_ok=True)
        return self._supervisor.start_program(
            f"{service}{what}",
            argv,
            environment,
            str(place),
            str(place / f"output{what}.log"),
            service=service == "toxiproxy",
        )

    def is_healthy(self, service: str) -> bool:
        """Whether the service's own health check succeeds."""
        kind, *test = SERVICES[service]["healthcheck"]["test"]
        assert kind == "CMD"
        own = [part.replace("127.0.0.1", self.addresses[service]) for part in test]
        return self.run(service, own, "-health").wait(30) == 0

    def output(self, service: str) -> str:
        return (self._directory / service / "output.log").read_text(errors="replace")[-2000:]


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_the_commands_of_the_file_make_a_cluster(tmp_path: Path) -> None:
    """Started in their order with their environments, all services become healthy and take records."""
    if sys.platform != "linux":
        pytest.skip("needs the whole of 127.0.0.0/8 on the loopback interface, as Linux has it")
    require("java")
    with Supervisor(str(tmp_path)) as supervisor:
        machine = Machine(supervisor, tmp_path)
        machine.zookeeper = start_zookeeper(supervisor, str(tmp_path / "zookeeper"), find_java()).address
        for service in in_order():
            if service == "zookeeper" or service not in PLAIN:
                continue  # The official image's server; ours has just been started in its place.
            child = machine.run(service, SERVICES[service]["command"])
            if service == "links":
                assert child.wait(START_S) == 0, machine.output(service)
            elif service == "toxiproxy":
                assert until(lambda: machine.is_healthy("toxiproxy"), START_S), machine.output(service)
        for service in BROKERS:
            assert until(lambda service=service: machine.is_healthy(service), START_S), machine.output(service)  # type: ignore[misc]
        produce_and_read(",".join(f"{machine.addresses[name]}:19092" for name in BROKERS))


def produce_and_read(bootstrap: str) -> None:
    """A topic on all brokers takes records with acks=all and gives them back."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("compose", 3, 3)]).values():
        future.result(30)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"})
    for number in range(100):
        producer.produce("compose", str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    settings = {"group.id": "compose", "auto.offset.reset": "error", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([confluent_kafka.TopicPartition("compose", partition, 0) for partition in range(3)])
    values: set[int] = set()

    def all_read() -> bool:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None
            values.add(int(message.value()))
        return len(values) == 100

    assert until(all_read, 60), f"read {len(values)} of 100"
    consumer.close()
