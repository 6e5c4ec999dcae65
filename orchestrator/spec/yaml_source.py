"""Reads YAML files safely into plain values, with the line of each value and the problems found.

It checks before it expands or constructs anything: no aliases, no tags, bounded size and depth. Scalars
follow the YAML 1.2 core schema: ``no`` and ``2024-01-01`` are text, only ``true`` and ``false`` are booleans.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestrator.spec.problems import BadSpec, Finding, Place, Problem, dotted, shown
from orchestrator.spec.source_file import Unreadable, read_bytes

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_VALUES = 50_000

INTEGER = re.compile(r"[-+]?[0-9]{1,18}$")
FLOAT = re.compile(r"[-+]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,4})?$")
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
NULL = re.compile(r"(?:~|null|Null|NULL|)$")

_WRITE_OUT = "write the value out where it is needed"


@dataclass
class Document:
    """The content of a file in plain Python types, the line of each place, and the problems found while
    reading.
    """

    file: str
    value: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def placed(self, findings: Iterable[Finding]) -> list[Problem]:
        return [Problem(dotted(f.at), f.message, f.hint, self._line(f.at)) for f in findings]

    def _line(self, at: Place) -> int | None:
        """Returns the line of the value at ``at``, or of the nearest value around it."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at)


def read_document(path: Path) -> Document:
    """Reads a file. Raises ``BadSpec`` if it cannot be read as YAML at all."""
    return parse_document(str(path), _read_text(path))


def parse_document(file: str, text: str) -> Document:
    try:
        node = _Composer(text).get_single_node()
    except _Refused as refused:
        raise _refusal(file, refused.message, refused.hint, refused.line) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_refusal(file, error) from None
    except yaml.YAMLError:
        raise _refusal(file, "not a text file: it holds control characters") from None
    document = Document(file)
    if node is not None:
        document.lines[()] = _line(node.start_mark)
        document.value = _value(node, (), document)
    return document


def _read_text(path: Path) -> str:
    file = str(path)
    try:
        return read_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except Unreadable as error:
        raise _refusal(file if file.isprintable() else shown(file), error.message, error.hint) from None
    except UnicodeDecodeError as error:
        raise _refusal(file, f"not a text file: byte {error.start} is not UTF-8") from None


class _Refused(Exception):
    def __init__(self, event: yaml.Event, message: str, hint: str = "") -> None:
        self.message, self.hint, self.line = message, hint, _line(event.start_mark)


class _Composer(yaml.SafeLoader):
    """PyYAML's composer.
    It refuses anchors, tags and documents that are too large as soon as it meets them.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            raise _Refused(
                event, f"{shown(mark + anchor)}: anchors and aliases are not supported", _WRITE_OUT
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            name = tag.replace("tag:yaml.org,2002:", "!!")
            raise _Refused(event, f"tags such as {shown(name)} are not supported", "write the plain value")
        self._values += 1
        if self._values > MAX_VALUES:
            raise _Refused(event, f"more than {MAX_VALUES:,} values", "is this the right file?")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Refused(event, f"nested more than {MAX_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _value(node: yaml.Node, path: Place, document: Document) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_at(item, (*path, index), item, document) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(node.value) if node.style is None else node.value


def _at(value: yaml.Node, path: Place, marked: yaml.Node, document: Document) -> Any:
    document.lines[path] = _line(marked.start_mark)
    return _value(value, path, document)


def _mapping(node: yaml.MappingNode, path: Place, document: Document) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = _line(key_node.start_mark)
        key = _value(key_node, path, document)
        if key == "<<":
            problem = Problem(dotted(path), "merge keys (<<) are not supported", _WRITE_OUT, line)
        elif isinstance(key, dict | list):
            problem = Problem(dotted(path), f"{shown(key)} cannot be a key", "keys are words", line)
        elif not isinstance(key, str):
            word = key_node.value
            hint = f'put it in quotes: "{word}"' if word else "write a word before the colon"
            problem = Problem(dotted(path), f"the key {shown(word)[1:-1]} is not text", hint, line)
        elif key in result:
            where = f"first on line {document.lines[(*path, key)]}"
            problem = Problem(dotted((*path, key)), f"this key stands here twice ({where})", "keep one", line)
        else:
            result[key] = _at(value_node, (*path, key), key_node, document)
            continue
        document.problems.append(problem)
    return result


def _scalar(text: str) -> Any:
    if NULL.match(text):
        return None
    if BOOLEAN.match(text):
        return text.lower() == "true"
    if INTEGER.match(text):
        return int(text)
    return float(text) if FLOAT.match(text) else text


def _syntax_refusal(file: str, error: yaml.MarkedYAMLError) -> BadSpec:
    mark = error.problem_mark or error.context_mark
    line = _line(mark) if mark is not None else None
    what = error.problem or error.context or "it cannot be read"
    if "another document" in what or "single document" in (error.context or ""):
        return _refusal(file, "a second document starts here (---); a file holds one", line=line)
    if "'\\t'" in what:
        return _refusal(file, "a tab is used for indentation", "YAML wants spaces", line)
    return _refusal(file, f"not YAML: {what.replace('<', '').replace('>', '')}", _syntax_hint(what), line)


def _syntax_hint(what: str) -> str:
    if "mapping values are not allowed" in what:
        return "is the indentation off? Text that contains a colon needs quotes"
    if "block end" in what or "could not find expected ':'" in what:
        return "check the indentation and the colon after each key"
    if "expected ',' or" in what:
        return "a bracket or brace is not closed, or a comma is missing"
    return ""


def _refusal(file: str, message: str, hint: str = "", line: int | None = None) -> BadSpec:
    return BadSpec(file, [Problem("", message, hint, line)])


def _line(mark: Any) -> int:
    return int(mark.line) + 1
