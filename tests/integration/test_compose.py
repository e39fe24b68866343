"""docker-compose.yml: its form, and its very commands and environments as plain processes.

There is no Docker engine where these tests run. Each service gets a loopback address of its own in place of its
container's, so that the ports in the file can stay as they are. What a profile of the file is for, it does here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema
import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.commands.load import arguments
from chaos.exits import Exit
from chaos.experiment.command_line import FIELDS, asked_by
from chaos.experiment.resolve import resolve
from chaos.links.links import Links
from cluster.config import broker
from cluster.config.properties import from_environment
from cluster.process.java import find_java
from cluster.process.processes import until
from cluster.process.supervisor import Child, Supervisor
from cluster.process.topology import link_names
from cluster.process.zookeeper import start_zookeeper
from loadgen.durations import seconds_of
from tests.support.require import require

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCHEMA: dict[str, Any] = json.loads((ROOT / "tests" / "testdata" / "compose.schema.json").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
LINKS: list[dict[str, Any]] = json.loads((ROOT / "docker-compose.links.json").read_text())
#: Where brokers are found by what runs beside them.
LOAD_HOST = "toxiproxy:23091,toxiproxy:23092,toxiproxy:23093"
#: The directory in which every command of the image begins.
WORKING = ":/var/lib/gapless"
#: Of the load and of the conductor, in place of the file's own.
LOAD_TIME = "30s"
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


def profiles(name: str) -> set[str]:
    return set(SERVICES[name]["profiles"])


def test_every_profile_is_whole() -> None:
    """Compose refuses a profile in which a service depends on one that it does not have."""
    for name, service in SERVICES.items():
        for needed in service.get("depends_on", {}):
            assert profiles(name) <= profiles(needed), f"{name} needs {needed}"
    cluster = ["zookeeper", "toxiproxy", *BROKERS]
    own = {
        "cluster": [],
        "load": ["load-master", "load-worker-1", "load-worker-2", "load-verifier"],
        "chaos": ["conductor", "verifier"],
        "obs": ["prometheus", "grafana"],
    }
    assert {each for name in SERVICES for each in profiles(name)} == set(own)
    for profile, others in own.items():
        assert [name for name in SERVICES if profile in profiles(name)] == [*cluster, *others]


def test_every_link_is_there_and_leads_to_what_it_is_called() -> None:
    """Each group of clients to each broker, each broker to each other and to ZooKeeper: on ports of their own."""
    assert {link["name"] for link in LINKS} == {str(name) for name in link_names((1, 2, 3), ("load", "host"))}
    assert len({link["listen"] for link in LINKS}) == len(LINKS)
    ports = {"load": 19093, "host": 9092, "b": 19092}
    for link in LINKS:
        opener, target = link["name"].split("-")
        port = ports[opener.rstrip("123")]
        assert link["upstream"] == ("zookeeper:2181" if target == "zk" else f"kafka-{target[1:]}:{port}"), link
        assert link["enabled"] is True and link["listen"].startswith("0.0.0.0:")


def test_the_image_of_toxiproxy_takes_the_same_links() -> None:
    """The other file changes the one service and nothing else: image, command and health check."""

    class Loader(yaml.SafeLoader):
        """Compose's own tag for what is taken away."""

    Loader.add_constructor("!reset", lambda _loader, _node: None)
    text = (ROOT / "docker-compose.toxiproxy.yml").read_text()
    ((name, service),) = yaml.load(text, Loader)["services"].items()
    assert name == "toxiproxy" and set(service) == {"image", "build", "command", "healthcheck"}
    assert service["image"].startswith("${TOXIPROXY_IMAGE:?") and service["build"] is None
    (mounted,) = SERVICES[name]["volumes"]
    assert f"-config={mounted.split(':')[1]}" in service["command"]
    assert mounted.split(":")[1] in SERVICES[name]["command"]


def test_what_is_mounted_is_there() -> None:
    """What Prometheus scrapes is what brokers are told."""
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", []) if volume[0] == "."]
    assert len(mounts) == 5 and all((ROOT / mount.split(":")[0]).is_file() for mount in mounts)
    pages = ROOT / "docs" / "observability"
    scraped = yaml.safe_load((pages / "prometheus.yml").read_text())["scrape_configs"]
    targets = {each["job_name"]: each["static_configs"][0]["targets"] for each in scraped}
    configs = {name: broker.validate(from_environment(SERVICES[name]["environment"])) for name in BROKERS}
    assert targets["compose"] == [f"{name}:{config['gapless.metrics.port']}" for name, config in configs.items()]
    assert {config["gapless.metrics.host"] for config in configs.values()} == {"0.0.0.0"}
    source = yaml.safe_load((pages / "grafana-datasource.yml").read_text())["datasources"][0]
    assert source["url"] == f"http://prometheus:{SERVICES['prometheus']['ports'][0].rpartition(':')[2]}"


def test_the_load_of_the_file_is_a_command_that_there_is() -> None:
    """Options are our own and Locust's; the host is the load's links; the master waits for as many as there are."""
    gapless, command, *others, option, host = SERVICES["load-master"]["command"]
    assert (gapless, command, option) == ("gapless", "load", "--host")
    assert host == LOAD_HOST == SERVICES["load-verifier"]["environment"]["HOST"]
    assert arguments(host, others, web=False) == [*others, "--host", host]
    workers = [name for name in SERVICES if name.startswith("load-worker-")]
    assert others[others.index("--expect-workers") + 1] == str(len(workers))
    for name in workers:
        gapless, command, *words = SERVICES[name]["command"]
        assert (gapless, command) == ("gapless", "load")
        assert arguments(None, words, web=False) == words == ["--worker", "--master-host", "load-master"]
    assert len({tuple(SERVICES[name]["volumes"]) for name in SERVICES if name.startswith("load-")}) == 1


def test_conductor_and_verifier_are_commands_that_there_are() -> None:
    """Of the conductor every option is known, and every replica mounted; the verifier judges what it left."""
    service = SERVICES["conductor"]
    shell, option, script = service["command"]
    assert (shell, option) == ("sh", "-c") and script.startswith("gapless run ")
    assert set(re.findall(r"--[a-z-]+", script)) <= {each.option for each in FIELDS.values()}
    assert set(service["environment"]["FAULTS"].split(",")) == {"reset", "cut-link", "slow-link", "drop-packets"}
    given = dict(re.findall(r"--replica-dir (\d)=(\S+)", script))
    mounted = dict(volume.split(":")[:2] for volume in service["volumes"])
    assert given == {name[-1]: f"{mounted[name]}/data" for name in BROKERS}
    assert service["environment"]["TARGET"] == f"kafka://{LOAD_HOST}"
    assert SERVICES["verifier"]["command"] == ["gapless", "verify", "results/latest"]
    assert set(SERVICES["verifier"]["volumes"]) <= set(service["volumes"])


def words_of(service: str) -> list[str]:
    """The command of a service, a script's words among them."""
    return [word for part in SERVICES[service]["command"] for word in part.replace('"', " ").split()]


def test_every_address_leads_to_a_service_that_was_waited_for() -> None:
    """What the load and the conductor connect to is a service of the file, at a port on which it listens, of the same
    profile; and it is up before: it, or what is behind its link, is a dependency, or a dependency of one."""
    listened = {int(link["listen"].split(":")[1]): link for link in LINKS}
    for name in ("load-master", "load-worker-1", "load-worker-2", "load-verifier", "conductor", "verifier"):
        texts = [*words_of(name), *SERVICES[name].get("environment", {}).values()]
        found = [address for text in texts for address in re.findall(r"([a-z][a-z0-9-]*):(\d+)(?!\S*/)", text)]
        assert bool(found) is (name in ("load-master", "load-verifier", "conductor")), name
        for host, port in found:
            assert host == "toxiproxy" and profiles(name) <= profiles(host), f"{name}: {host}"
            link = listened[int(port)]
            assert link["name"].startswith("load-"), f"{name} uses the link {link['name']}"
            assert {host, link["upstream"].split(":")[0]} <= needed_by(name)


def needed_by(service: str) -> set[str]:
    """What is started before it, directly or not."""
    direct = set(SERVICES[service].get("depends_on", {}))
    return direct.union(*map(needed_by, direct))


def test_workers_find_the_master() -> None:
    """By its name, at Locust's own ports: neither side names another one; and they are waited for no longer than it."""
    master, *workers = ("load-master", "load-worker-1", "load-worker-2")
    for worker in workers:
        words = words_of(worker)
        assert words[words.index("--master-host") + 1] == master and master in needed_by(worker)
    for name in (master, *workers):
        assert not [word for word in words_of(name) if re.match("--master-(port|bind)", word)]
    options = locust_options()
    for name in (master, *workers):
        assert {word for word in words_of(name) if word.startswith("--")} <= options


def locust_options() -> set[str]:
    """All options of the command of the load, its own and Locust's; asked of the command itself."""
    done = subprocess.run(
        [sys.executable, "-m", "chaos.commands.main", "load", "--options"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return set(re.findall(r"--[a-z][a-z-]+", done.stdout))


def test_the_script_that_judges_the_load_takes_its_newest_run(tmp_path: Path) -> None:
    """It reads back, at the load's hosts, and judges what is newest below the directory that loads write to, but not
    what could not be read back. It begins when master and workers have ended well."""
    for seconds, name in enumerate(("old", "new")):
        place = tmp_path / "results" / "locust" / name
        place.mkdir(parents=True)
        os.utime(place, (seconds, seconds))
    shell, option, script = SERVICES["load-verifier"]["command"]
    stub = tmp_path / "gapless"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **SERVICES["load-verifier"]["environment"]}
    for status, calls in ((0, ["load --read-back", "verify"]), (1, ["load --read-back"])):
        stub.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
        stub.chmod(0o755)
        argv = [shell, option, script.replace("$$", "$")]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        assert done.returncode == status and [line.split(" results/")[0] for line in lines] == calls
        assert all("results/locust/new/" in line for line in lines)
        assert lines[0].endswith(f"--host {LOAD_HOST}")
    ends = {name: each["condition"] for name, each in SERVICES["load-verifier"]["depends_on"].items()}
    assert ends == dict.fromkeys(("load-master", "load-worker-1", "load-worker-2"), "service_completed_successfully")


def test_what_one_service_writes_another_reads_in_the_same_place() -> None:
    """The load's volume is the working directory of all its services, and the conductor's of it and the verifier; each
    is a volume of the file. A link in one names no place outside of it."""
    for names in (("load-master", "load-worker-1", "load-worker-2", "load-verifier"), ("conductor", "verifier")):
        (homes,) = {tuple(each for each in SERVICES[name]["volumes"] if each.endswith(WORKING)) for name in names}
        (home,) = homes
        assert home.removesuffix(WORKING) in COMPOSE["volumes"]
        assert all("working_dir" not in SERVICES[name] for name in names)
    assert re.findall(r"^WORKDIR (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[-1] == WORKING[1:]


def test_the_conductor_ends_well_if_its_run_was_left_to_the_verifier() -> None:
    """A run that is not judged ends with the status of one that is unknown; any other ends the service with 1."""
    script = SERVICES["conductor"]["command"][-1].replace("$$", "$")
    assert "--no-verify" in script
    for status in (Exit.UNKNOWN, Exit.VALID, Exit.BAD_ARGUMENTS, Exit.HARNESS_FAILED):
        done = subprocess.run(["/bin/sh", "-c", f"gapless() {{ return {int(status)}; }}\n{script}"], check=False)
        assert (done.returncode == 0) is (status is Exit.UNKNOWN)
    assert SERVICES["verifier"]["depends_on"] == {"conductor": {"condition": "service_completed_successfully"}}


def test_the_experiment_of_the_conductor_can_be_run() -> None:
    """With its environment, its options come to an experiment: its faults reach a cluster that others started."""
    service = SERVICES["conductor"]
    line = service["command"][-1].split("\n")[0].rstrip(" \\")
    script = " ".join(each.rstrip("\\ ") for each in service["command"][-1].strip().splitlines()[:-1])
    for name, value in service["environment"].items():
        script = script.replace(f'"$${name}"', value)
    words = script.split()
    assert line.startswith("gapless run") and words[:2] == ["gapless", "run"]
    given: dict[str, Any] = {}
    options = {each.option: name for name, each in FIELDS.items()}
    rest = iter(words[2:])
    for word in rest:
        name = options[word]
        if FIELDS[name].default is False:
            given[name] = True
        elif name == "replica_dirs":
            given.setdefault(name, []).append(next(rest))
        else:
            given[name] = next(rest)
    given["time_limit_s"] = seconds_of(given["time_limit_s"])
    experiment, warnings = resolve(asked_by({"seed": 1, **given}))
    assert (experiment.asked.brokers, len(experiment.asked.replica_dirs)) == (len(BROKERS), len(BROKERS))
    assert set(experiment.faults) == set(service["environment"]["FAULTS"].split(",")) and warnings == []
    assert len(experiment.asked.target.removeprefix("kafka://").split(",")) == len(BROKERS)  # type: ignore[union-attr]


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
        inner, load, outer = config.advertised_listeners
        assert (inner.host, inner.port) == (name, config.listeners[0].port)
        listen = {link["name"]: int(link["listen"].split(":")[1]) for link in LINKS}
        own = f"b{config.broker_id}"
        assert (load.host, load.port) == ("toxiproxy", listen[f"load-{own}"])
        assert (outer.host, outer.port) == ("127.0.0.1", listen[f"host-{own}"])
        assert f"127.0.0.1:{outer.port}:{outer.port}" in SERVICES["toxiproxy"]["ports"]
        assert "ports" not in SERVICES[name], "past the proxy"
        peers = {peer: ("toxiproxy", listen[f"{own}-b{peer}"]) for peer in (1, 2, 3) if peer != config.broker_id}
        assert config.peer_addresses == peers
        assert config["zookeeper.connect"] == f"toxiproxy:{listen[f'{own}-zk']}"
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
        # Locally imported code instead of the installed one: they are the same in the image.
        commands = directory / "bin"
        commands.mkdir()
        script = commands / "gapless"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m chaos.commands.main "$@"\n')
        script.chmod(0o755)
        self._path = f"{commands}:{os.environ['PATH']}"

    def translate(self, service: str, text: str) -> str:
        """A command's part or a variable's value, as it means the same here."""
        # What others connect to is another service's; what a service binds or probes is its own.
        text = text.replace("zookeeper:2181", self.zookeeper)
        for name, address in self.addresses.items():
            text = re.sub(rf"(?<![\w-]){name}(?=:\d)|^{name}$", address, text)
        text = text.replace("0.0.0.0", self.addresses[service])
        for volume in SERVICES[service].get("volumes", []):
            source, inside, *_ = volume.split(":")
            text = text.replace(inside, str(self.place(source)))
        # A dollar sign is written twice in a Compose file. The load is a short one here.
        return re.sub("^5m$", LOAD_TIME, text.replace("$$", "$"))

    def place(self, source: str) -> Path:
        """Where a volume is, or a file that is mounted, translated for the one service that has it."""
        if not source.startswith("."):
            return self._directory / source
        path = self._directory / Path(source).name
        if not path.exists():
            document = json.loads((ROOT / source).read_text())
            for link in document:
                link["listen"] = link["listen"].replace("0.0.0.0", self.addresses["toxiproxy"])
                link["upstream"] = self.upstream(link["upstream"])
            path.write_text(json.dumps(document))
        return path

    def upstream(self, address: str) -> str:
        """The address of a service of the file."""
        host, _, port = address.partition(":")
        return self.zookeeper if host == "zookeeper" else f"{self.addresses[host]}:{port}"

    def run(self, service: str, command: list[str], what: str = "", **more: str) -> Child:
        """Start a command in the environment of a service and ``more``, in its volume."""
        given: Mapping[str, str] = SERVICES[service].get("environment", {})
        environment = {name: self.translate(service, value) for name, value in given.items()}
        environment |= {"PYTHONPATH": str(ROOT), "PATH": self._path, **more}
        argv = [self.translate(service, part) for part in command]
        program = {"python": sys.executable, "gapless": str(self._directory / "bin" / "gapless"), "sh": "/bin/sh"}
        logs = self._directory / "logs"
        logs.mkdir(exist_ok=True)
        own = [volume.split(":")[0] for volume in SERVICES[service].get("volumes", []) if WORKING in volume]
        place = self._directory / (own[0] if own else service)
        place.mkdir(exist_ok=True)
        return self._supervisor.start_program(
            f"{service}{what}",
            [program[argv[0]], *argv[1:]],
            environment,
            str(place),
            str(logs / f"{service}{what}.log"),
            service=service == "toxiproxy",
        )

    def is_healthy(self, service: str) -> bool:
        """Whether the service's own health check succeeds."""
        kind, *test = SERVICES[service]["healthcheck"]["test"]
        assert kind == "CMD"
        own = [part.replace("127.0.0.1", self.addresses[service]) for part in test]
        return self.run(service, own, "-health").wait(30) == 0

    def output(self, service: str) -> str:
        return (self._directory / "logs" / f"{service}.log").read_text(errors="replace")[-3000:]

    def start_cluster(self, **more: str) -> None:
        """Start what the profile cluster has, in its order, until all of it is healthy; ``more``: settings of the
        brokers."""
        for service in in_order():
            if service == "zookeeper" or "cluster" not in profiles(service):
                continue  # The official image's server; ours has just been started in its place.
            self.run(service, SERVICES[service]["command"], **(more if service in BROKERS else {}))
            if service == "toxiproxy":
                assert until(lambda: self.is_healthy("toxiproxy"), START_S), self.output(service)
        for service in BROKERS:
            assert until(lambda service=service: self.is_healthy(service), START_S), self.output(service)  # type: ignore[misc]

    def ends_well(self, services: Sequence[str], within_s: float) -> None:
        """Start these one after the other, and wait until each has ended with 0."""
        children = {service: self.run(service, SERVICES[service]["command"]) for service in services}
        for service, child in children.items():
            assert child.wait(within_s) == 0, f"{service}: {self.output(service)}"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if sys.platform != "linux":
        pytest.skip("needs the whole of 127.0.0.0/8 on the loopback interface, as Linux has it")
    require("java")
    with Supervisor(str(tmp_path)) as supervisor:
        made = Machine(supervisor, tmp_path)
        made.zookeeper = start_zookeeper(supervisor, str(tmp_path / "zookeeper"), find_java()).address
        yield made


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_the_commands_of_the_file_make_a_cluster(machine: Machine) -> None:
    """Started in their order with their environments, all services become healthy and take records, through links.

    A broker that is cut off from its peers by its links leaves every ISR: nothing of it goes past the proxy.
    """
    # Else it takes half a minute until a follower that is cut off leaves the ISR.
    machine.start_cluster(KAFKA_REPLICA_LAG_TIME_MAX_MS="4000")
    bootstrap = machine.translate("load-master", LOAD_HOST)
    produce_and_read(bootstrap)
    links = Links(f"http://{machine.addresses['toxiproxy']}:8474", 10.0)
    moved = {link["name"]: links.stats(link["name"]) for link in LINKS if not link["name"].startswith("host-")}
    assert [name for name, stats in moved.items() if stats is None or not stats.connections_accepted] == []
    for link in ("b1-b2", "b1-b3", "b2-b1", "b3-b1"):
        links.cut(link, "both", lossless=False)
    # A follower that has all there is stays in sync, so there must be more.
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0})

    def left_behind() -> bool:
        for partition in range(3):
            producer.produce("compose", b"more", partition=partition)
        producer.poll(0.2)
        return followers_in_sync(bootstrap) <= 2

    assert until(left_behind, START_S), "broker 1 is cut off and still in sync"


@pytest.mark.integration
@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_profiles_load_and_chaos_come_to_a_verdict(machine: Machine, tmp_path: Path) -> None:
    """A master and its workers record into one volume, and that is judged; so is what the conductor broke."""
    machine.start_cluster()
    machine.ends_well([name for name in SERVICES if name.startswith("load-") and name != "load-verifier"], 120)
    machine.ends_well(["load-verifier"], 200)
    (load,) = (tmp_path / "load" / "results" / "locust").iterdir()
    assert json.loads((load / "verdict.json").read_text())["verdict"] == "valid"
    assert len(list((load / "history").glob("load-w*.arrow"))) == 2
    machine.ends_well(["conductor"], 300)
    machine.ends_well(["verifier"], 400)
    verdict = json.loads((tmp_path / "conductor" / "results" / "latest" / "verdict.json").read_text())
    assert verdict["verdict"] == "valid" and verdict["stats"]["faults"]["injected"]


def followers_in_sync(bootstrap: str) -> int:
    """The smallest ISR of the topic."""
    (topic,) = AdminClient({"bootstrap.servers": bootstrap}).list_topics("compose", timeout=10).topics.values()
    return min((len(partition.isrs) for partition in topic.partitions.values()), default=9)


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
