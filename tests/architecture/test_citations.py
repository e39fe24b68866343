"""What code and documents cite is there: pages and their headings, rows of tables, files, modules, KIPs and issues.

A docstring cites a page with its heading (docs/log.md "Roll"), a KIP, an issue or a class of Kafka. Everything but the
classes is looked up here. Does not own what else stands in texts (``tests.architecture.test_texts``).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.architecture.sources import PACKAGES, ROOT, committed_files, modules
from tests.architecture.test_texts import texts

ROOMS = "|".join((*PACKAGES, "tests", "bench"))
KAFKA = "docs/reference/kafka.md"
BUGS = "docs/reference/anomalies-and-bugs.md"
CHECKS = "docs/produce-checks.md"
#: Plants wrong citations.
THIS = "tests/architecture/test_citations.py"

#: The end of a line within a docstring, a comment or a paragraph: what is cited may be divided there.
_BREAK = re.compile(r"[ \t]*\n[ \t]*(?:#:?[ \t]?)?")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)

_PAGE = re.compile(r"(?<![\w/.])docs/[\w/-]+\.md\b")
_SECTIONS = re.compile(
    r"""(?<![\w/.])(docs/[\w/-]+\.md)[`)]*((?:(?:,| and|, and|,? under|,? section|:)? \(?"[^"\n]{2,60}"\)?)+)"""
)
_NUMBERS = r"(\d+(?:(?:-|, | and | to |, and )\d+)*)"
_ROWS = (re.compile(rf"(?:rows?|checks) {_NUMBERS} of {CHECKS}"), re.compile(rf"{CHECKS},? rows? {_NUMBERS}"))
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\)")
_ANCHOR = re.compile(r"(?<![\w/.(])(docs/[\w/-]+\.md)#([\w-]+)")
_BARE_FILE = re.compile(rf"(?<![\w/.`*<$}}-])((?:{ROOMS})/[\w/]*\w\.(?:py|md))(?![\w*])")
_BARE_MODULE = re.compile(rf"(?<![\w/.`\"'@-])((?:{'|'.join(PACKAGES)})(?:\.(?!md\b)[a-z_]\w+)+)(?![\w(/*-])")
_IN_DOCS = re.compile(r"(?<![`\w])`(\w+\.py)`(?!`)")
_MEMBER = re.compile(r"`([A-Z]\w*[a-z]\w*)\.([a-z_]\w*)(?:\(\))?`")
_UNHYPHENED = re.compile(r"\b(?:KIP|KAFKA)(?: |_|: ?)\d+\b")
_FILE = re.compile(rf"`((?:{ROOMS}|scripts)/[\w./-]*)`")
_MODULE = re.compile(rf"`((?:{ROOMS})(?:\.\w+)+)(?:\(\))?`")
_NEIGHBOR = re.compile(r"``(\w+\.py)``")
#: What names a document without saying where it is, or one that is not in the repository. Pieced together, so that this
#: file does not name it either.
_NOWHERE = re.compile(
    r"\b[Kk]afka-" r"semantics|\b[Dd]esign " r"section|\bpeers" r"\.md|\b[Ff]easibility (?:part|\d)"
    r"|\b[Ss]eeds? 00" r"\d|\breference [A-Z]\d|\bof section " r"\d|KIP-\d+, \d+\.\d"
    r"|(?<!Redpanda )\bissue \d{1,2}\b|[( ]bar \d+ ?[),o]"
)  # fmt: skip
#: A file of a run, and those of Python's and numpy's own, which look like ours.
_OTHERS = ("verifier.log", "json.py", "numpy.py")
#: Where a number of each kind is told: (what a citation looks like, what its row begins with, the page).
_TOLD = {
    "KIP": (re.compile(r"\bKIP-\d+\b"), re.compile(r"^\| (KIP-\d+) \|", re.MULTILINE), KAFKA),
    "KAFKA": (re.compile(r"\bKAFKA-\d+\b"), re.compile(r"^\| (KAFKA-\d+) \|", re.MULTILINE), BUGS),
    "Redpanda": (
        re.compile(r"\bRedpanda (?:issue )?(\d{4,5})\b"),
        re.compile(r"^\| Redpanda (\d+) \|", re.MULTILINE),
        BUGS,
    ),
    "librdkafka": (
        re.compile(r"\bissue (\d{4})\b"),
        re.compile(r"^\| (?:librdkafka|Redpanda) (\d+) \|", re.MULTILINE),
        BUGS,
    ),
}

#: An issue, and the last cell of its row.
_ISSUE = re.compile(r"^\| ((?:KAFKA-|Redpanda |librdkafka |Bufstream )[\d.]+) \|.*\| (.+) \|$", re.MULTILINE)

Problems = Iterator[str]


@cache
def flat(text: str) -> str:
    """The text without its line breaks."""
    return _BREAK.sub(" ", text)


@cache
def headings(page: str) -> tuple[str, ...]:
    """The headings of a page, as they are written."""
    return tuple(_HEADING.findall(_FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))))


@cache
def anchors(page: str) -> frozenset[str]:
    """What a link to a part of the page may name, as GitHub makes it of the headings."""
    seen: Counter[str] = Counter()
    made = []
    for heading in headings(page):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        made.append(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(made)


@cache
def rows() -> frozenset[int]:
    """The numbers of the checks of a produce request."""
    text = (ROOT / CHECKS).read_text(encoding="utf-8")
    # Number 4 is Kafka's, and told of below the table.
    return frozenset(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE)))


@cache
def file_names() -> frozenset[str]:
    return frozenset(path.name for path in committed_files())


@cache
def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module of ours, or what one of them defines."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        file = next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()), None)
        if file is not None:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            inside = parts[length:]
            return not inside or (inside[0] in _defined(tree) and all(name in _members(tree) for name in inside[1:]))
        if place.is_dir():
            return length == len(parts)
    return False


def _defined(tree: ast.Module) -> set[str]:
    """What a module defines or hands on: what stands in it, not within a function."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    for node in tree.body:
        for each in ast.walk(node) if isinstance(node, ast.If | ast.Try | ast.Assign | ast.AnnAssign) else (node,):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(each.name)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            # names that are looked up in a table when they are asked for
            elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
                found.add(each.value)
    return found


def _members(tree: ast.AST) -> set[str]:
    """What the classes of a module have: methods, fields and what they assign to themselves."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


@cache
def members_of_classes() -> dict[str, set[str]]:
    """Our classes, with what each has; where it inherits, what any of its bases has."""
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                own.setdefault(node.name, set()).update(_members(node))
                named = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
                bases.setdefault(node.name, set()).update(named)

    def with_bases(name: str, seen: frozenset[str]) -> set[str]:
        inherited = (with_bases(base, seen | {name}) for base in bases.get(name, ()) if base not in seen)
        return own.get(name, set()).union(*inherited)

    return {name: with_bases(name, frozenset()) for name in own}


def prose(name: str, text: str) -> str:
    """What of a file is said to readers: all of a page but its examples; docstrings and comments of code."""
    if name.endswith(".md"):
        return _FENCE.sub("", text)
    return "\n".join(re.findall(r'"""[^"]*(?:"(?!"")[^"]*)*"""|^ *#.*|  #.*', text, re.MULTILINE))


def cited_pages(_name: str, text: str) -> Problems:
    for page in _PAGE.findall(text):
        if not (ROOT / page).is_file():
            yield f"{page} is not there"


def cited_sections(_name: str, text: str) -> Problems:
    for page, quoted in _SECTIONS.findall(flat(text)):
        if (ROOT / page).is_file():
            for heading in re.findall(r'"([^"]+)"', quoted):
                if heading not in headings(page):
                    yield f"{page} has no heading {heading!r}"


def cited_anchors(_name: str, text: str) -> Problems:
    for page, anchor in _ANCHOR.findall(text):
        if (ROOT / page).is_file() and anchor not in anchors(page):
            yield f"{page} has no part {anchor}"


def cited_rows(_name: str, text: str) -> Problems:
    for pattern in _ROWS if CHECKS in text else ():
        for numbers in pattern.findall(flat(text)):
            for number in map(int, re.findall(r"\d+", numbers)):
                if number not in rows():
                    yield f"{CHECKS} has no row {number}"


def links(name: str, text: str) -> Problems:
    if name.endswith(".md"):
        for link in _LINK.findall(_FENCE.sub("", text)):
            target, _, anchor = link.partition("#")
            path = (ROOT / name).parent / target if target else ROOT / name
            if "://" in link or not anchor or path.suffix != ".md" or not path.is_file():
                continue  # a file that is not there is test_texts' matter
            if anchor not in anchors(str(path.resolve().relative_to(ROOT))):
                yield f"the link {link} leads to no heading"


def cited_files(name: str, text: str) -> Problems:
    if name.endswith((".md", ".py")):
        for file in _FILE.findall(text):
            # What has another ending lies in a run's directory, which has a loadgen/ too.
            if ("." not in file or file.endswith((".py", ".txt", ".jsonl"))) and not (ROOT / file).exists():
                yield f"{file} is not there"


def cited_modules(name: str, text: str) -> Problems:
    if name.endswith((".md", ".py")):
        for dotted in _MODULE.findall(text):
            if dotted not in _OTHERS and not is_there(dotted):
                yield f"{dotted} is nothing of ours"


def cited_barely(name: str, text: str) -> Problems:
    if name.endswith(".md") or name.startswith(PACKAGES):
        said = prose(name, text)
        yield from (f"{file} is not there" for file in _BARE_FILE.findall(said) if not (ROOT / file).exists())
        for dotted in _BARE_MODULE.findall(said):
            if dotted not in _OTHERS and not is_there(dotted):
                yield f"{dotted} is nothing of ours"


def cited_members(name: str, text: str) -> Problems:
    # tests have classes of their own by the same names
    if name.endswith(".md") or name.startswith(PACKAGES):
        for owner, member in _MEMBER.findall(prose(name, text)):
            # what has capitals inside is Kafka's own, and a NamedTuple has more than it says
            is_ours = member.islower() and member not in ("_make", "_replace", "_asdict")
            if is_ours and owner in members_of_classes() and member not in members_of_classes()[owner]:
                yield f"{owner} has no {member}"


def unhyphened(_name: str, text: str) -> Problems:
    yield from (f"{cited} lacks its hyphen" for cited in _UNHYPHENED.findall(text))


def cited_neighbors(name: str, text: str) -> Problems:
    if name.endswith((".py", ".md")):
        for file in (_NEIGHBOR if name.endswith(".py") else _IN_DOCS).findall(text):
            if file not in _OTHERS and file not in file_names():
                yield f"no file is named {file}"


def nowhere(_name: str, text: str) -> Problems:
    for found in _NOWHERE.findall(flat(text)):
        yield f"{found!r} names a document that is not there"


def untold(_name: str, text: str) -> Problems:
    for kind, (cited, _, page) in _TOLD.items():
        for number in cited.findall(text):
            if number not in told(kind):
                yield f"{number} is not told of in {page}"


@cache
def told(kind: str) -> frozenset[str]:
    """The numbers of one kind that have a row in their table."""
    _, row, page = _TOLD[kind]
    return frozenset(row.findall((ROOT / page).read_text(encoding="utf-8")))


RULES: dict[str, Callable[[str, str], Problems]] = {
    "a page": cited_pages,
    "a heading of a page": cited_sections,
    "a part of a page": cited_anchors,
    "a file or module without quotes": cited_barely,
    "what a class has": cited_members,
    "a number with its hyphen": unhyphened,
    "a row of the produce checks": cited_rows,
    "a link with an anchor": links,
    "a file of the code": cited_files,
    "a module or what is in it": cited_modules,
    "a neighboring file": cited_neighbors,
    "a document that is in the repository": nowhere,
    "a proposal or an issue that is told of": untold,
}


@pytest.mark.parametrize("what", RULES)
def test_what_is_cited_is_there(what: str) -> None:
    """Every citation of this kind resolves, in code, documents and transcripts."""
    wrong = [
        f"{name}: {problem}" for name, text in texts().items() if name != THIS for problem in RULES[what](name, text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("what", "right", "wrong"),
    [
        ("a page", "see docs/log.md.", "see docs/logs.md."),
        ("a heading of a page", 'docs/log.md\n# "Roll", "Retention"', 'docs/log.md "Roll" and\n    "Rolling"'),
        ("a row of the produce checks", f"rows 9-13 of {CHECKS}", f"{CHECKS}, rows 18 and 24"),
        ("a heading of a page", 'docs/log.md "Roll"', 'docs/log.md, "roll"'),
        ("a heading of a page", 'docs/log.md "Roll"', 'docs/log.md ("Rolling")'),
        ("a heading of a page", 'docs/log.md "Roll"', '`docs/log.md`, under "Rolling"'),
        ("a part of a page", "docs/log.md#the-data-directory", "docs/log.md#the-data"),
        ("a file or module without quotes", '"""See cluster/log/roll.py."""', '"""See cluster/log/nothing.py."""'),
        ("a file or module without quotes", "# cluster.log.roll has it", "# cluster.log.nothing has it"),
        ("a module or what is in it", "`cluster.log.roll.roll_reason`", "`cluster.log.roll.because`"),
        ("what a class has", '"""`Segment.write`, `Other.nothing`"""', '"""`Segment.scribble`"""'),
        ("a number with its hyphen", "KIP-101", "KIP " "101"),
        ("a number with its hyphen", "KAFKA-1555", "KAFKA " "99999"),
        ("a link with an anchor", '[a](docs/log.md#roll "A title")', '[a](docs/log.md#rolling "A title")'),
        ("a link with an anchor", "[a](docs/log.md#the-data-directory)", "[a](docs/log.md#the-data)"),
        ("a file of the code", "`cluster/log/roll.py`", "`cluster/log/rolls.py`"),
        ("a module or what is in it", "``cluster.log.roll.roll_reason``", "``cluster.log.roll.reasons_to``"),
        ("a neighboring file", "``roll.py``", "``rolling_on.py``"),
        ("a document that is in the repository", "(KIP-511)", "(reference " "C3)"),
        ("a document that is in the repository", "section 3 of RFC 1982", "R of section " "9"),
        ("a document that is in the repository", "Redpanda issue 3003", "a promise (issue " "1)"),
        ("a proposal or an issue that is told of", "KIP-101, KAFKA-1555, Redpanda issue 3003", "KIP-" "9999"),
        ("a proposal or an issue that is told of", "librdkafka's issue 4953", "its issue " "9999"),
    ],
)  # fmt: skip
def test_a_wrong_citation_is_found(what: str, right: str, wrong: str) -> None:
    """Each rule lets what is there pass, and names what is not."""
    assert list(RULES[what]("README.md", right)) == list(RULES[what]("cluster/x.py", right)) == []
    assert {*RULES[what]("README.md", wrong), *RULES[what]("cluster/x.py", wrong)} != set()


@pytest.mark.parametrize("kind", [kind for kind in _TOLD if kind != "librdkafka"])
def test_what_is_told_of_is_cited(kind: str) -> None:
    """The tables of proposals and issues hold what code and documents cite, and no more."""
    cited, _, page = _TOLD[kind]
    used = {number for name, text in texts().items() if name not in (page, THIS) for number in cited.findall(text)}
    assert told(kind) - used == set()


def test_what_shows_a_bug_is_there() -> None:
    """Each bug of the reference page names what plays it here: a removal, a scenario, a defect, a test or a page."""
    code = [ROOT / "tests/simulation/removals.py", *(ROOT / "cluster/defects").glob("*.py")]
    known = {name for path in code for name in re.findall(r'"([a-z][a-z-]+)"', path.read_text(encoding="utf-8"))}
    known |= {path.stem for path in (ROOT / "tests/simulation/golden").glob("*.txt")}
    shown = _ISSUE.findall((ROOT / BUGS).read_text(encoding="utf-8"))
    assert len(shown) > 20
    for issue, shows in shown:
        names = {name for name in re.findall(r"`([^`]+)`", shows) if "/" not in name}
        assert names or "`tests/" in shows or "](" in shows, f"nothing shows {issue}"
        assert names <= known or "the cause" in shows or "](" in shows, f"{issue}: {names - known}"
