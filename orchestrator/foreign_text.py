"""Text from other machines as text and nothing else: no terminal or log takes a part of it for a command.

``one_line`` is for the moment when a node's words become a reason of ours. ``plain`` is for the last moment,
when any text is printed, whoever wrote it.
"""

import re

LONGEST_LINE = 1000

_LEFT_TO_RIGHT = "\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c"
"""Marks that change the direction of writing, and so what a line seems to say."""
_UNSAFE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_LEFT_TO_RIGHT}]")
_BREAKS = re.compile(r"[\t\n]")


def plain(text: str) -> str:
    """Control characters, except line ends and tabs, become visible: ``\\x1b[2J``."""
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str, most: int = LONGEST_LINE) -> str:
    """The same for one line of bounded length: line ends and tabs become visible as well."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    return _BREAKS.sub(_escaped, plain(cut))


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
