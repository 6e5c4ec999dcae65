"""Hints for expectations that cannot be read: which metric is meant, and how to write its number."""

import difflib
import re
from collections.abc import Iterable

from orchestrator.results.contribution import Metric

_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s.,]\S*)")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_FACTORS = {"s": _SECONDS, "": {"%": 0.01}, "bit/s": {"b/s": 1.0, "kb/s": 1e3, "kbit/s": 1e3, "Mb/s": 1e6}}
"""By a metric's unit: what a number in another unit is multiplied with."""
_MOST = 6


def meant_metrics(word: str, known: Iterable[str]) -> list[str]:
    """Returns the metrics that may be meant with ``word``: those that begin with it or have it as a part,
    else one that is spelt alike.
    """
    names = list(known)
    plain = word.lower().replace("-", "_")
    parts = [name for name in names if f"_{plain}_" in f"_{name}_"]
    begun = [name for name in parts if name.startswith(plain)]
    if begun or parts:
        return begun or parts
    return difflib.get_close_matches(plain, names, n=1)


def name_hint(word: str, known: Iterable[str]) -> str:
    """Returns what is to be said of a metric that is not known."""
    names = list(known)
    meant = meant_metrics(word, names)
    if not meant:
        return f"there are: {', '.join(names)}"
    if len(meant) > _MOST:
        return f"did you mean {', '.join(meant[:_MOST])}, …?"
    return f"did you mean {' or '.join(filter(None, [', '.join(meant[:-1]), meant[-1]]))}?"


def number_hint(metric: Metric, symbol: str, text: str) -> str:
    """Returns how to write ``text``, which is no number, if it is one with a unit; else nothing."""
    quantity = _QUANTITY.fullmatch(text)
    if quantity is None:
        return ""
    number, unit = float(quantity[1]), quantity[2]
    factor = _FACTORS.get(metric.unit, {}).get(unit)
    bound = number if factor is None else number * factor
    how = f"write {metric.name} {symbol} {bound:.12g}"
    if factor is not None and unit == "%":
        return f"{how}: a share, of 1"
    if metric.unit:
        return (
            f"{how if factor is not None or unit == metric.unit else 'write no unit'}: it is in {metric.unit}"
        )
    return "write no unit: it is a plain number"
