"""The rules that say what an operator processes at once: single items, a window, a join."""

from msgspec import Struct


class Each(Struct, frozen=True, tag="each"):
    """One item of any input. The output keeps its position in the stream."""


class CountWindow(Struct, frozen=True, tag="count"):
    """``size`` items of one stream; the next window begins ``slide`` items later. Holes count."""

    size: int
    slide: int


class TimeWindow(Struct, frozen=True, tag="time"):
    """What was captured within ``size_ns``, of all inputs; windows begin at multiples of ``slide_ns``."""

    size_ns: int
    slide_ns: int


class SameTau(Struct, frozen=True, tag="tau"):
    """The items of all inputs at the same position."""


UnitRule = Each | CountWindow | TimeWindow | SameTau
