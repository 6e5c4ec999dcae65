"""Reads patterns. The grammar, with blanks allowed everywhere:

    pattern  = name | "!" pattern | ("and" | "seq") "(" parts ";" duration ")" | "or" "(" parts ")"
    parts    = pattern {"," pattern}
    name     = a letter or _, then letters, digits, _ . -
    duration = a number with s, ms, min or h; without a unit it counts seconds

    parse("seq(smoke, and(heat, !drill; 30s); 2 min)")

An error names the character at which reading stopped.
"""

import math
import re

from node_agent.apps.comet.patterns import And, Event, Not, Or, Pattern, Seq

LONGEST = 10_000
"""Characters of a pattern."""
DEEPEST = 20
"""Operators inside one another."""
LONGEST_WINDOW = 30 * 86400.0

_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_UNIT = re.compile(r"[A-Za-zµ]*")
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_OPERATORS = ("and", "seq", "or")


class PatternError(ValueError):
    """A pattern cannot be read. ``position``: of the first character that is wrong, counted from 0."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        super().__init__(f"character {position + 1} of the pattern: {problem}")
        self.text = text
        self.position = position
        self.problem = problem

    def drawn(self) -> str:
        """Returns the line that is wrong, with a mark below the place."""
        begin = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[begin:].split("\n", 1)[0]
        return f"{line}\n{' ' * (self.position - begin)}^ {self.problem}"


def parse(text: str) -> Pattern:
    """Raises PatternError."""
    if len(text) > LONGEST:
        raise PatternError(text, LONGEST, f"a pattern has at most {LONGEST} characters")
    reader = _Reader(text)
    start = reader.next_place()
    pattern = reader.pattern(0)
    if isinstance(pattern, Not):
        raise PatternError(text, start, 'a negation stands inside "and" or "seq", like and(a, !b; 60s)')
    rest = reader.next_place()
    if rest < len(text):
        raise PatternError(text, rest, f"{_shown(text, rest)} comes after the end of the pattern")
    return pattern


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def next_place(self) -> int:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def pattern(self, depth: int) -> Pattern:
        place = self.next_place()
        if depth > DEEPEST:
            raise PatternError(self.text, place, f"more than {DEEPEST} operators stand inside one another")
        if self.accept("!"):
            inner_place = self.next_place()
            inner = self.pattern(depth + 1)
            if isinstance(inner, Not):
                raise PatternError(self.text, inner_place, "a negation cannot be negated: leave out both")
            return Not(inner)
        name = _NAME.match(self.text, place)
        if name is None:
            expected = 'a name, "!", "and(", "seq(" or "or(" is expected'
            raise PatternError(self.text, place, f"{expected}, not {_shown(self.text, place)}")
        self.at = name.end()
        word = name[0]
        if self.accept("("):
            if word not in _OPERATORS:
                problem = f'there is no operator "{word}": and, seq and or are known'
                raise PatternError(self.text, place, problem)
            return self.operator(word, place, depth)
        if word in _OPERATORS:
            raise PatternError(self.text, self.next_place(), f'"(" is expected after the operator {word}')
        return Event(word)

    def operator(self, word: str, place: int, depth: int) -> Pattern:
        parts, places = [], []
        while True:
            places.append(self.next_place())
            parts.append(self.pattern(depth + 1))
            if not self.accept(","):
                break
        window = self.window(word)
        self.expect(")", "the end of the operator")
        negated = [at for at, part in zip(places, parts, strict=True) if isinstance(part, Not)]
        if word == "or" and negated:
            problem = "an absence has no instances: write a negation inside and or seq, not inside or"
            raise PatternError(self.text, negated[0], problem)
        if len(negated) == len(parts):
            problem = f"{word} needs at least one part that is not negated"
            raise PatternError(self.text, place, problem)
        if len(parts) < 2:
            raise PatternError(self.text, place, f"{word} combines at least two parts")
        if word == "or":
            return Or(tuple(parts))
        return (And if word == "and" else Seq)(tuple(parts), window)

    def window(self, word: str) -> float:
        place = self.next_place()
        if not self.accept(";"):
            if word != "or" and self.text[place : place + 1] == ")":
                raise PatternError(self.text, place, f"{word} needs a window, like {word}(a, b; 60s)")
            return 0.0
        if word == "or":
            raise PatternError(self.text, place, "or has no window: each instance of a part counts alone")
        return self.duration()

    def duration(self) -> float:
        place = self.next_place()
        number = _NUMBER.match(self.text, place)
        if number is None:
            problem = f"a duration is expected, like 60s or 2 min, not {_shown(self.text, place)}"
            raise PatternError(self.text, place, problem)
        self.at = number.end()
        unit_place = self.next_place()
        unit = _UNIT.match(self.text, unit_place)
        word = unit[0] if unit else ""
        if word not in _UNITS:
            problem = f'there is no unit "{word[:20]}": write s, ms, min or h'
            raise PatternError(self.text, unit_place, problem)
        self.at = unit_place + len(word)
        seconds = float(number[0]) * _UNITS[word]
        if not 0 < seconds <= LONGEST_WINDOW or math.isinf(seconds):
            problem = "a window is longer than 0 and at most 30 days"
            raise PatternError(self.text, place, problem)
        return seconds

    def accept(self, character: str) -> bool:
        place = self.next_place()
        if self.text[place : place + 1] != character:
            return False
        self.at = place + 1
        return True

    def expect(self, character: str, what: str) -> None:
        place = self.next_place()
        if not self.accept(character):
            problem = f'"{character}" is expected, {what}, not {_shown(self.text, place)}'
            raise PatternError(self.text, place, problem)


def _shown(text: str, place: int) -> str:
    return f'"{text[place]}"' if place < len(text) else "the end of the text"
