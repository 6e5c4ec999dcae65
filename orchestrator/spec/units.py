"""Reads quantities as people write them (``120s``, ``36 km/h``, ``11 Mb/s``, ``-10 dBm``) into SI base units.

A bare number counts as a number of base units. Two exceptions to SI: angles are stored in degrees, powers in
dBm.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from orchestrator.spec.problems import did_you_mean, listed, shown, unusable

_NUMBER = r"[-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_WRITTEN = re.compile(rf"\s*({_NUMBER})\s*(.*?)\s*", re.ASCII)
_DIGIT = re.compile(r"[0-9]")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\b", re.ASCII)


@dataclass(frozen=True)
class Quantity:
    """One kind of value, for use as a pydantic annotation.
    ``units`` maps a unit to its size in base units.
    """

    kind: str
    units: dict[str, float] = field(hash=False)
    examples: tuple[str, ...]
    base: str
    low: float
    high: float
    above_low: bool = False
    whole: bool = False
    convert: Callable[[float], float] | None = field(default=None, hash=False)
    """Converts to the base unit, for a quantity whose base unit has another scale (dBm beside mW and W)."""

    def positive(self) -> "Quantity":
        return replace(self, above_low=True)

    def within(self, ge: float | None = None, gt: float | None = None, le: float | None = None) -> "Quantity":
        """Returns the same kind of value with narrower bounds."""
        low = max(self.low, *(bound for bound in (ge, gt) if bound is not None), self.low)
        above = self.above_low or gt is not None
        return replace(self, low=low, above_low=above, high=self.high if le is None else min(self.high, le))

    def read(self, value: Any) -> float:
        """Returns the value in base units.
        Raises ``Unusable``, which says what is wrong and how to write it.
        """
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise unusable(f"{shown(value)} is not {self.kind}", self._advice())
        try:
            number = self._in_base_units(value) if isinstance(value, str) else float(value)
        except OverflowError:  # a whole number with hundreds of digits
            number = math.inf
        if math.isnan(number) or number == math.inf:
            raise unusable(f"{shown(value)} is not a finite number", self._advice())
        if number < self.low or (self.above_low and number == self.low):
            word = "more than" if self.above_low else "at least"
            raise unusable(f"{shown(value)} is too small: it must be {word} {self._say(self.low)}")
        if number > self.high:
            raise unusable(f"{shown(value)} is too large: it must be at most {self._say(self.high)}")
        if not self.whole:
            return number
        if number != int(number):
            raise unusable(f"{shown(value)} is not a whole number of {self.base}")
        return int(number)

    def _in_base_units(self, text: str) -> float:
        if _DECIMAL_COMMA.match(text):
            raise unusable(f"{shown(text)} is not {self.kind}", "write decimals with a dot")
        written = _WRITTEN.fullmatch(text)
        if not written:
            raise unusable(f"{shown(text)} is not {self.kind}", self._advice())
        number, unit = float(written[1].replace("−", "-")), written[2]
        if unit == "":
            return number
        if unit not in self.units:
            raise unusable(
                f'{shown(text)} is not {self.kind}: unknown unit "{unit[:20]}"', self._unit_advice(unit)
            )
        # Dividing by the exact reciprocal makes 500 ms and 0.5 s the same number.
        scale = self.units[unit]
        scaled = number * scale if scale >= 1 else number / round(1 / scale, 9)
        return scaled if self.convert is None or unit == self.base else self.convert(scaled)

    def _unit_advice(self, unit: str) -> str:
        meant = [name for name in self.units if name.lower() == unit.lower()]
        return f'did you mean "{meant[0]}"?' if meant else self._advice()

    def _advice(self) -> str:
        return f"write it like {listed(self.examples)}"

    def _say(self, number: float) -> str:
        return f"{number:,.12g} {self.base}".rstrip()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        bound = "exclusiveMinimum" if self.above_low else "minimum"
        units = "|".join(re.escape(unit).replace(r"\ ", " ") for unit in self.units)
        return {
            "anyOf": [
                {"type": "integer" if self.whole else "number", bound: self.low, "maximum": self.high},
                {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*(?:{units})?\s*$"},
            ],
            "description": f"{self.kind}; a bare number is in {self.base}".capitalize(),
            "examples": list(self.examples),
        }


@dataclass(frozen=True)
class OrWord:
    """A quantity, or one word in its place; for use as a pydantic annotation."""

    quantity: Quantity
    word: str

    def read(self, value: Any) -> float | str:
        if value == self.word:
            return self.word
        if self.word in str(value) and _DIGIT.search(str(value)):
            text = f"{shown(value)} says two things: {self.quantity.kind}, and {self.word}"
            raise unusable(text, f"write one of them, like {listed((*self.quantity.examples, self.word))}")
        if hint := did_you_mean(value, [self.word]):
            raise unusable(f"{shown(value)} is not {self.quantity.kind}", hint)
        return replace(self.quantity, examples=(*self.quantity.examples, self.word)).read(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        described = self.quantity.__get_pydantic_json_schema__(schema, handler)
        return {**described, "anyOf": [*described["anyOf"], {"const": self.word}]}


def _dbm(milliwatts: float) -> float:
    return 10 * math.log10(milliwatts) if milliwatts > 0 else -math.inf


_TIMES = {
    **{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3},
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_BITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_BYTES = {"B": 1.0, "byte": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1024.0**2}
_MORE_BYTES = {**_BYTES, "GB": 1e9, "GiB": 1024.0**3}

DURATION = Quantity("a duration", _TIMES, ("120s", "2 min", "500 ms"), "seconds", 0, 30 * 86400)
SPEED = Quantity("a speed", {"m/s": 1.0, "km/h": 1 / 3.6}, ("5 m/s", "36 km/h"), "m/s", 0, 1000)
LENGTH = Quantity(
    "a length", {"cm": 0.01, "m": 1.0, "km": 1000.0}, ("300 m", "1.2 km"), "metres", 0, 1_000_000
)
BIT_RATE = Quantity(
    "a bit rate",
    {prefix + unit: size for unit in ("b/s", "bit/s", "bps") for prefix, size in _BITS.items()},
    ("11 Mb/s", "500 kbit/s"),
    "bit/s",
    0,
    1e12,
    above_low=True,
)
POWER = Quantity(
    "a power", {"dBm": 1.0, "mW": 1.0, "W": 1e3}, ("-10 dBm", "5 mW"), "dBm", -200, 60, convert=_dbm
)
LEVEL = Quantity("a ratio in decibels", {"dB": 1.0}, ("4 dB",), "dB", -200, 200)
GAIN = Quantity("an antenna gain", {"dBi": 1.0, "dB": 1.0}, ("2 dBi",), "dBi", -60, 60)
FREQUENCY = Quantity(
    "a frequency",
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    ("2.4 GHz", "914 MHz"),
    "Hz",
    0,
    1e12,
    above_low=True,
)
SIZE = Quantity("a size", _BYTES, ("8 kB", "8 KiB", "500 B"), "bytes", 0, 64 * 1024**2, whole=True)
ROOM = Quantity("a size", _MORE_BYTES, ("64 MB", "1 GB"), "bytes", 0, 1024**4, whole=True)
RATE = Quantity(
    "a rate",
    {"/s": 1.0, "fps": 1.0, "Hz": 1.0, "kHz": 1e3, "/min": 1 / 60},
    ("10 /s", "10 fps"),
    "per second",
    0,
    1e6,
    above_low=True,
)
SHARE = Quantity("a share", {"%": 0.01}, ("10%", "0.1"), "of the whole", 0, 1, above_low=True)
ANGLE = Quantity(
    "an angle",
    {**dict.fromkeys(("deg", "°", "degree", "degrees"), 1.0), "rad": math.degrees(1)},
    ("90 deg", "-45°"),
    "degrees",
    -360,
    360,
)

Duration = Annotated[float, DURATION]
PositiveDuration = Annotated[float, DURATION.positive()]
Speed = Annotated[float, SPEED]
PositiveSpeed = Annotated[float, SPEED.positive()]
Length = Annotated[float, LENGTH]
PositiveLength = Annotated[float, LENGTH.positive()]
BitRate = Annotated[float, BIT_RATE]
Power = Annotated[float, POWER]
Gain = Annotated[float, GAIN]
Frequency = Annotated[float, FREQUENCY]
Size = Annotated[int, SIZE]
Rate = Annotated[float, RATE]
Angle = Annotated[float, ANGLE]
