"""The evidence fuzzer from the command line: seed by seed, a valid run with one thing of it tampered with.

    .venv/bin/python -m tests.evidence.run --count 5000 [--first N] [--run DIR] [--resealed]

Without --run small made-up runs are tampered with, else copies of this one, which must be valid. --resealed seals each
copy again, as a forger would, and names what the rules alone let pass; that is a measure (docs/verifier.md says what no
rule can see), not a failure. A table at the end shows what was tampered with, how often and how, and what came of it.
Exit status 1 if anything was judged falsely, or made the verifier raise.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.evidence import sources
from tests.evidence.coverage import table
from tests.evidence.fuzzer import OUTCOMES, Outcome, fuzz
from tests.evidence.judge import judge
from verifier.spark import session as sessions

#: Copies that are judged in one Spark job.
TOGETHER = 250


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.evidence.run", description="Tamper with evidence, seed by seed.")
    parser.add_argument("--count", type=int, default=200, help="how many tampered copies")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--run", type=Path, help="a valid run directory to copy, in place of made-up ones")
    parser.add_argument("--resealed", action="store_true", help="seal each copy again after the tampering")
    parser.add_argument("--together", type=int, default=TOGETHER, help="copies that are judged in one Spark job")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    with TemporaryDirectory(prefix="gapless-fuzz-") as name, sessions.session(Path(name) / "spark") as started:
        home = Path(name)
        if arguments.run is not None:
            # judging writes a verdict: not into what belongs to somebody
            runs = {"run": Path(shutil.copytree(arguments.run, home / "sources" / "run"))}
        else:
            runs = {each: sources.write(each, home / "sources" / each).path for each in sources.STORIES}
        for source, judgement in judge(started.spark, runs, home / "staged").items():
            if judgement.verdict != "valid":
                sys.stderr.write(f"{source} is {judgement.verdict}, not valid: {'; '.join(judgement.reasons)}\n")
                return 1
        outcomes = []
        began = time.monotonic()
        end = arguments.first + arguments.count
        for first in range(arguments.first, end, arguments.together):
            seeds = range(first, min(first + arguments.together, end))
            for outcome in fuzz(started.spark, runs, seeds, home, resealed=arguments.resealed):
                outcomes.append(outcome)
                if outcome.is_false:
                    sys.stdout.write(f"{outcome}\n    {_again(outcome, arguments)}\n")
                    sys.stdout.flush()
            rate = len(outcomes) / (time.monotonic() - began)
            false = sum(each.is_false for each in outcomes)
            sys.stderr.write(f"{len(outcomes)} of {arguments.count} mutations, {rate:.1f}/s, {false} false\n")
    return _result(outcomes, resealed=arguments.resealed)


def _again(outcome: Outcome, arguments: argparse.Namespace) -> str:
    options = f" --run {arguments.run}" if arguments.run is not None else ""
    options += " --resealed" if arguments.resealed else ""
    return f".venv/bin/python -m tests.evidence.run --first {outcome.seed} --count 1{options}"


def _result(outcomes: list[Outcome], *, resealed: bool) -> int:
    sys.stdout.write("".join(f"{line}\n" for line in table(outcomes)))
    counts = Counter(each.what for each in outcomes)
    numbers = " ".join(f"{what}={counts[what]}" for what in OUTCOMES)
    words = "RESULT resealed" if resealed else "RESULT"
    sys.stdout.write(f"{words} mutations={len(outcomes)} {numbers}\n")
    failed = [each for each in outcomes if each.what == "crashed" or (each.is_false and not resealed)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
