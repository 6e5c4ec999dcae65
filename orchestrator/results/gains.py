"""Says in words how cells of a sweep compare: how many times as much, how sure, over how many pairs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.results import registry
from orchestrator.results.comparison import ENOUGH_PAIRS
from orchestrator.results.views import label_of, without

Document = Mapping[str, Any]

NO_RESULT = (
    f"Fewer than {ENOUGH_PAIRS} pairs are no result yet: other seeds may say the opposite. Add some to the "
    "sweep, like seed: [1, 2, 3, 4, 5]."
)


def gains(rows: Sequence[Document], app: str, kind: str) -> list[str]:
    """Returns a sentence for each cell that is compared with another; last, what few pairs are worth."""
    found = list(_compared(rows, app, kind))
    sentences = [_sentence(row, what, ratio) for row, what, ratio in found]
    if any(ratio["pairs"] < ENOUGH_PAIRS for _, _, ratio in found):
        sentences.append(NO_RESULT)
    return sentences


def _compared(rows: Sequence[Document], app: str, kind: str) -> Iterator[tuple[Document, str, Document]]:
    headlines = [metric for metric in registry.metrics(kind).values() if metric.headline]
    for row in rows:
        if "versus" not in row or row["versus"]["factors"] == row["factors"]:
            continue
        ratios = row["apps"].get(app, {}).get("ratios", {})
        for metric in headlines:
            if metric.name in ratios:
                yield row, metric.gain, ratios[metric.name]


def _sentence(row: Document, what: str, ratio: Document) -> str:
    base = row["versus"]["factors"]
    (path,) = (name for name, value in row["factors"].items() if base.get(name) != value)
    rest = label_of(without(dict(row["factors"]), path))
    ours, theirs = (label_of({path: factors[path]}) for factors in (row["factors"], base))
    begin = f"{rest}: " if rest else ""
    pairs = f"{ratio['pairs']} pair{'' if ratio['pairs'] == 1 else 's'} of runs"
    if ratio["ratio_of_means"] is None:
        why = f"{theirs} has none" if ratio["pairs"] else "no seed has both"
        return f"{begin}{what} of {ours} cannot be compared with {theirs}: {why}"
    text = f"{begin}{what} of {ours}: {_times(ratio['ratio_of_means'])} {theirs} (ratio of means"
    text += f", 95 % {_span(ratio['ratio_of_means_95'])}" if ratio["ratio_of_means_95"] else ""
    if ratio["mean"] is not None:
        some = "" if ratio["n"] == ratio["pairs"] else f" of the {ratio['n']} in which {theirs} has some"
        text += f"; mean of ratios{some} {_times(ratio['mean'])}"
        text += f", 95 % {_span(ratio['mean_95'])}" if ratio["mean_95"] else ""
    return f"{text}; {pairs})"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} ×"


def _span(interval: Sequence[float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"
