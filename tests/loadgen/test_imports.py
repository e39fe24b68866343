"""What the conductor imports of the load brings in neither gevent nor Locust, nor pyspark."""

from __future__ import annotations

import subprocess
import sys


def test_only_users_and_the_locustfile_load_locust() -> None:
    """Every other module of the room, the final tools included, imports without patching anything."""
    code = (
        "import importlib, pkgutil, sys, loadgen\n"
        "names = [m.name for m in pkgutil.walk_packages(loadgen.__path__, 'loadgen.')]\n"
        "wanted = [n for n in names if not n.startswith('loadgen.users.') and n != 'loadgen.locustfile']\n"
        "assert 'loadgen.sentinel' in wanted and 'loadgen.stream' in wanted\n"
        "for name in wanted: importlib.import_module(name)\n"
        "bad = {'gevent', 'locust', 'pyspark'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
