"""Text reads as a native technical writer wrote it: phrases that are translations word by word appear nowhere.

Owns the list of phrases, each with what to write instead. It looks at everything a reader meets: documents, help,
messages, pages, docstrings and comments. Does not own spelling (``tests.architecture.test_texts``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.architecture.test_texts import texts

#: Tests are read by maintainers alone; this file names the phrases; the lock and the license are not ours to word.
SKIPPED = ("tests/", "requirements", ".github/workflows/")

#: Phrases (``|`` between spellings of one) -> what to write instead. Whole words, in any case, across line breaks.
PHRASES = {
    # negations
    "and is none|are none either|is none either|is none anymore|that are none": "is not one; contains none",
    "is none of ours|are none of ours|is none of the|is none exactly": "is not one of; is not exact",
    "nobody": "no one, or name the process: no broker, no client",
    "nobody else": "no one else, no other process",
    "somebody": "someone, or name the process: another broker, a caller",
    "somebody else": "another process, another caller",
    "everybody": "everyone, or name them: every waiter, all brokers",
    "whoever": "anyone who, the caller; of a concession: no matter who",
    "holds no partition": "is not a partition directory",
    "any more": "anymore, no longer",
    "nought": "zero",
    "is no matter of|no matter of the": "does not affect",
    "in vain": "without success, to no effect",
    "that there is not|that there are not": "unknown, that does not exist",
    # time and repetition
    "for ever": "forever",
    "once more": "again",
    "made again": "rebuilt, recreated, repeated",
    "goes on with|go on with|going on with|gone on with": "continues with, resumes",
    "goes on|go on|went on|gone on|going on": "continues",
    "all the same": "anyway, nevertheless",
    "counts as ever|count as ever|as ever": "counts as usual",
    "is given up|are given up|was given up|were given up|be given up": "is abandoned",
    "given up half way": "abandoned halfway",
    "side by side do not meet": "concurrent runs do not clash",
    "do not meet": "do not clash, leave a gap",
    "until it is there|once until it": "until it appears",
    "so long a|lasts so long|for so long|took so long|take so long": "this long, that long, of this length",
    "so many": "that many, this many",
    # who did it
    "died by itself|dies by itself|die by itself": "exited unexpectedly",
    "who asks": "the caller, the client",
    "a load by hand|loads by hand|load by hand": "a standalone load",
    "faults by hand|fault by hand": "manual faults",
    "locust by hand|locust started by hand": "standalone Locust",
    "in its way|in their way": "what blocks it, which limit forbids it",
    "newborn": "new",
    "for a person|to a person|as a person": "for people, to the user",
    # what is said and asked
    "says of|say of|said of|saying of": "says about",
    "tells of|tell of": "tells about, reports",
    "hears of|hear of": "learns of, is told about",
    "what came of it|what came of them|what came of the": "the outcome",
    "is no firing|are no firings": "is not a firing",
    "is not heeded|is heeded|are heeded|not heeded": "is ignored, is obeyed",
    "unless it is asked for|if nothing is said": "unless it is given, by default",
    "is warned of|are warned of|was warned of|warned of|warns of|warn of": "is warned about",
    "what there is": "what exists, the evidence so far",
    "cannot be had|to be had": "cannot bind, is not available",
    "of itself|of themselves": "about itself",
    "wants host:port|wants key=value|wants http|wants local|wants dimension|wants a number": "takes HOST:PORT",
    "exclude each other|excludes each other": "are mutually exclusive",
    "goes with the sweep|goes with the sweeps|goes with 'gapless": "works only with",
    "switch wrong logic on|wrong logic on": "plant a known bug in the brokers",
    "choose another word": "pick another name",
    "choose another, or": "pick another, or",
    "another one in a process that was forked": "after fork(), create a new client in the child process",
    "as jepsen has it|as typer has it|as argparse has it|as wsgi has it|as kafka has it": "in its form",
    "once more: not": "(Ctrl-C again skips judging)",
    "that nobody chose": "random",
    # where things are
    "stands in|stand in|stands there|stand there|stands at|stand at|stands on|stand on|stands beside|stand beside|"
    "stands below|stand below|stands above|stand above|stands under|stand under|stands behind": "is in, is there",
    "what lies in|lie in results|whatever lies": "what is in",
    "is looked at|are looked at|was looked at|were looked at|be looked at|not looked at": "is examined, is checked",
    "is looked into|be looked into": "is examined",
    "is looked whether|be looked whether|was looked whether|is looked who|is looked how": "name who checks what",
    "beside the event loop|beside the loop": "off the event loop",
    "behind the last record|behind the one before|batches behind it|bytes behind": "after the last record",
    "no cell behind|is started behind": "after",
    "whose data directories stay|directories stay": "which runs keep their broker data",
    "need as many producers|lower the processes": "needs at least N producers; raise --users or lower it",
    # units
    "object a line|operation a line|example a line|pair a line|job a line|one a line|a line each": "one per line",
    "a process a core|one a core": "one process per core",
    "one module a command|one line an entry": "one per command",
    # messages
    "put the original back": "restore the original",
    "looks guilty": "would look faulty",
    "is not of the run|what is not of the run": "does not change the run",
    "needs as many": "needs at least that many",
    "goes with rate|goes with a rate": "works only with",
    "seeds by comma|names by comma|list by comma": "comma-separated",
    "get going|got going": "start",
    "come into the isr|came into the isr|came back into": "join, rejoin",
    "batches came again|batch came again": "was resent",
    "all of the time": "for the whole run, always",
    "foreign toxiproxy|foreign server": "an external Toxiproxy",
    "and asks for|and was to have": "but the run asked for, but should have",
    "history speaks of|history says nothing of": "mentions, does not mention",
    "of which the same": "about which the same",
    "by its own account": "as it reports",
    "sees to it": "ensures",
    "by itself it|resigns by itself": "without options, resigns",
    "was wanted of|what was wanted": "the options of, what it waited for",
    "one whole json": "a complete JSON object",
    "no one follows": "there are no followers",
    "goes the right way|go the right way": "is handled correctly",
    "gone by itself|ended by itself|ends by itself|end by itself": "exited on its own",
    "by hand and by themselves": "manual and automatic",
    "is passed over|are passed over|passed over in silence": "is ignored, is skipped",
    "sets it right|set it right|set right": "corrects it",
    # what was and will be
    "former verdict|former load|former session|former node|former owner": "previous",
    "present cell": "current cell",
}  # fmt: skip

#: (file, phrase) -> why it is right there.
EXCEPTIONS: dict[tuple[str, str], str] = {}

#: The end of a line within a paragraph, a comment, or a message of several literals.
_BREAK = re.compile(r"""(?: ?["'])?[ \t]*\n[ \t]*(?:#:?[ \t]+|//[ \t]*|[fr]?["'](?!""))?""")


class Corpus:
    """Texts, searched as one: lowercase, a line break within a paragraph as one space."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        parts, self._begins, at = [], [], 0
        for name, text in texts.items():
            part = _BREAK.sub("\n", text).lower()
            self._begins.append((at, name))
            parts.append(part)
            at += len(part) + 1
        self._whole = "\n".join(parts)
        self._flat = self._whole.replace("\n", " ")

    def hits(self, phrase: str) -> Iterator[tuple[str, int]]:
        """(file, line) of each place where the phrase is words of its own."""
        at = self._flat.find(phrase)
        while at >= 0:
            end = at + len(phrase)
            if not (_is_word(self._flat[at - 1 : at]) or _is_word(self._flat[end : end + 1])):
                begin, name = max(each for each in self._begins if each[0] <= at)
                yield name, self._whole.count("\n", begin, at) + 1
            at = self._flat.find(phrase, at + 1)


def _is_word(character: str) -> bool:
    """Names such as ``hand-over-to-anybody`` and ``stands_in`` are not text."""
    return character.isalnum() or character in {"-", "_"}


@cache
def project() -> Corpus:
    return Corpus({name: text for name, text in texts().items() if not name.startswith(SKIPPED)})


@pytest.mark.parametrize("spellings", sorted(PHRASES))
def test_no_text_has(spellings: str) -> None:
    """None of these phrases is written; each failure says where, and what to write."""
    wrong = [
        f"{name}:{line}: {phrase!r}; write: {PHRASES[spellings]}"
        for phrase in spellings.split("|")
        for name, line in project().hits(phrase)
        if (name, phrase) not in EXCEPTIONS
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_needed() -> None:
    """An exception whose phrase is gone goes, too."""
    unused = [key for key in EXCEPTIONS if not any(name == key[0] for name, _ in project().hits(key[1]))]
    assert unused == []


def test_a_phrase_is_found_wherever_a_line_is_broken() -> None:
    """In a docstring, a comment and a message of two literals, with its line; names that contain it do not count."""
    planted = (
        'a\n    """It is once\n    more."""\n# once\n# more\nsay("once "\n    f"more")\nonce-more = at_once_more\n'
    )
    assert [line for _, line in Corpus({"first": "once\n", "planted": planted}).hits("once more")] == [2, 4, 6]


def test_the_list_is_long_enough_to_matter() -> None:
    """At least forty phrases, none of them twice."""
    spellings = [phrase for each in PHRASES for phrase in each.split("|")]
    assert len(PHRASES) >= 40
    assert len(set(spellings)) == len(spellings)
