"""YAML that people write: read from its file and taken apart. Owns errors of one line that say where; no form of ours.

YAML says that a mapping has each key once (YAML 1.2.2, section 3.2.1.1); the library takes the last one in silence, and
half of what someone wrote would not hold. Here it is refused. Anyone who reads knows what the document is, and names
the file before the message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.process.one_line import reason

#: Values that a document may stand for, its aliases followed: a thousand times what anyone has written.
MOST_VALUES = 200_000


class DocumentError(ValueError):
    """It cannot be read: one line with the place in the text, without the name of the file."""


def read_text(path: Path) -> str:
    """The text of a file. Raises DocumentError if there is none, or no text in it."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DocumentError(f"it cannot be read: {reason(error)}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"line {line}: it is not UTF-8 text (byte 0x{error.object[error.start]:02x})") from error


def load_yaml(text: str) -> Any:
    """The one document of a text, None if it is empty. Raises DocumentError, also for a key that is given twice."""
    # a command that reads no YAML does not wait for it
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_bombs(node)
        _refuse_repeated_keys(loader, node)
        return loader.construct_document(node)
    except DocumentError:
        raise
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        raise DocumentError(f"{_place(mark)}it is not YAML: {said}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError(f"it is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise DocumentError("it is nested too deeply") from error


def _refuse_bombs(root: Any) -> None:
    """A few aliases, merged again and again, stand for more values than any memory holds. Raises DocumentError.

    What a node stands for is the sum of what is in it, and is examined once. One that is in itself counts as one.
    """
    stands_for: dict[int, int] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        if stands_for.get(id(node)):
            waiting.pop()
            continue
        within = _within(node)
        if id(node) not in stands_for:
            stands_for[id(node)] = 0
            waiting += [each for each in within if id(each) not in stands_for]
            continue
        waiting.pop()
        values = stands_for[id(node)] = 1 + sum(stands_for[id(each)] for each in within)
        if values > MOST_VALUES:
            raise DocumentError(f"line {node.start_mark.line + 1}: it stands for more than {MOST_VALUES:,} values")


def _within(node: Any) -> list[Any]:
    """The nodes of a collection: of a mapping its keys and its values."""
    if not isinstance(node.value, list):
        return []
    return [each for entry in node.value for each in (entry if isinstance(entry, tuple) else (entry,))]


def kind_of(document: object) -> str:
    """What stands where a mapping should, for a message: ``it is empty``, ``it is a list``."""
    if document is None:
        return "it is empty"
    return f"it is a {'list' if isinstance(document, list) else 'single value'}"


def _refuse_repeated_keys(loader: Any, root: Any) -> None:
    """Look through all mappings, also those that aliases lead to, round in circles or not. Raises DocumentError."""
    import yaml

    waiting, seen = [root], {id(root)}
    repeats: list[tuple[int, int, str]] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            repeats += _repeats(loader, node)
        for each in _within(node):
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    if repeats:
        line, first, key = min(repeats)
        raise DocumentError(f"line {line}: key {key!r} is given twice, first in line {first}; leave one of them out")


def _repeats(loader: Any, mapping: Any) -> list[tuple[int, int, str]]:
    """Line, first line and text of each key of one mapping that would replace another."""
    import yaml

    lines: dict[Any, int] = {}
    found = []
    for key, _ in mapping.value:
        # a key that is no scalar is refused when the document is made
        if isinstance(key, yaml.ScalarNode):
            # compared as a dict will: 1 and 0x1 are the same; a merge (<<) is no value
            is_merge = key.tag == "tag:yaml.org,2002:merge"
            value = key.value if is_merge else loader.construct_object(key)
            line = key.start_mark.line + 1
            if value in lines:
                found.append((line, lines[value], key.value))
            lines.setdefault(value, line)
    return found


def _place(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
