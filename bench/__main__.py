"""``python -m bench [NAME ...]``: the benchmarks, one after the other. Owns their list."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("proxy", "produce")


def main() -> int:
    """Run those that are named, or all; each in a process of its own. Returns the first status that is not 0."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 254
    statuses = []
    for name in wanted:
        print(f"== {name}", flush=True)
        statuses.append(subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode)
    return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main())
