"""Describes problems of a file as values (place, message, hint), and the error that carries all of them."""

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from orchestrator.errors import BadInput

Place = tuple[str | int, ...]
"""The place of a value in a document: keys and list positions from the top."""

_LONGEST_SHOWN = 40
_MOST_RENDERED = 50
_CLOSE_ENOUGH = 0.6


class Finding(NamedTuple):
    """A problem whose file and line are not known yet."""

    at: Place
    message: str
    hint: str = ""


class Problem(NamedTuple):
    path: str
    message: str
    hint: str = ""
    line: int | None = None
    file: str | None = None
    """Set if the problem is in another file than the one that was asked for."""

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        place += [f"line {self.line}"] if self.line else []
        parts = [", ".join(place), self.path, self.message]
        text = "  " + ": ".join(part for part in parts if part)
        return f"{text}\n      {self.hint}" if self.hint else text


class BadSpec(BadInput):
    """A file cannot be used; lists all problems of the file."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"{file}: {count}", *map(str, self.problems[:_MOST_RENDERED])]
        if len(problems) > _MOST_RENDERED:
            lines.append(f"  … and {len(problems) - _MOST_RENDERED} more (--json lists them all)")
        super().__init__("\n".join(lines))


class Unusable(ValueError):
    """Raised by the validators of sections. Places are relative to the value that is checked."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__("; ".join(finding.message for finding in findings))


def unusable(message: str, hint: str = "", at: Place = ()) -> Unusable:
    return Unusable(Finding(at, message, hint))


def shown(value: Any) -> str:
    """Returns the value as an error message may quote it: short, on one line, without control characters."""
    match value:
        case None:
            return "an empty value"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            return json.dumps(_shortened(value), ensure_ascii=False)
        case _:
            return _shortened(json.dumps(value, default=str))


def in_words(value: Any) -> str:
    """Returns a setting as it can be written in the middle of a line: short, and without quotes."""
    return shown(value).strip('"')


def dotted(path: Place) -> str:
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + _shortened(part)
    return text


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    if not isinstance(word, str):
        return ""
    scored = [(difflib.SequenceMatcher(None, word.lower(), name.lower()).ratio(), name) for name in known]
    # If several are equally close, take the first: for n1, take n01 of n01, n21 and n31.
    score, best = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    return f'did you mean "{best}"?' if score >= _CLOSE_ENOUGH else ""


def listed(names: Iterable[str]) -> str:
    """Joins names: ``a``, ``a or b``, ``a, b or c``."""
    items = list(names)
    return " or ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
