"""Says in words how cells of a sweep compare: how many times as much, how sure, over how many pairs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.results import registry
from orchestrator.results.comparison import ENOUGH_PAIRS
from orchestrator.results.contribution import Metric
from orchestrator.results.views import label_of, without

Document = Mapping[str, Any]

NO_RESULT = (
    f"Fewer than {ENOUGH_PAIRS} pairs are no result yet: other seeds may say the opposite. Add some to the "
    "sweep, like seed: [1, 2, 3, 4, 5]."
)
NO_PAIRS = (
    "Nothing can be compared: no two usable runs have the same seed. rove status says which runs are not "
    "valid, and why. If the machine was too busy, use a quieter one, fewer nodes, or backend: sim."
)


def gains(rows: Sequence[Document], app: str, kind: str) -> list[str]:
    """Returns a sentence for each cell that is compared with another; last, what few pairs are worth.

    Without any pair there is one sentence: more seeds would not help.
    """
    found = list(_compared(rows, app, kind))
    if found and not any(ratio["pairs"] for _, _, ratio in found):
        return [NO_PAIRS]
    sentences = [_sentence(row, metric, ratio) for row, metric, ratio in found]
    if any(ratio["pairs"] < ENOUGH_PAIRS for _, _, ratio in found):
        sentences.append(NO_RESULT)
    return sentences


def _compared(rows: Sequence[Document], app: str, kind: str) -> Iterator[tuple[Document, Metric, Document]]:
    headlines = [metric for metric in registry.metrics(kind).values() if metric.headline]
    for row in rows:
        if "versus" not in row or row["versus"]["factors"] == row["factors"]:
            continue
        ratios = row["apps"].get(app, {}).get("ratios", {})
        for metric in headlines:
            if metric.name in ratios:
                yield row, metric, ratios[metric.name]


def _sentence(row: Document, metric: Metric, ratio: Document) -> str:
    """Returns ``k = 3 carries 2.20 × [1.60, 2.90] the tuples of k = 1 at speed = 10 m/s, 5 paired runs``."""
    base = row["versus"]["factors"]
    (path,) = (name for name, value in row["factors"].items() if base.get(name) != value)
    rest = label_of(without(dict(row["factors"]), path))
    ours, theirs = (label_of({path: factors[path]}) for factors in (row["factors"], base))
    where = f" at {rest}" if rest else ""
    if ratio["ratio_of_means"] is None:
        why = f"{theirs} has none" if ratio["pairs"] else "no seed has both"
        return f"{metric.gain} of {ours} cannot be compared with {theirs}{where}: {why}"
    times = _times(ratio["ratio_of_means"], ratio["ratio_of_means_95"])
    pairs = f"{ratio['pairs']} paired run{'' if ratio['pairs'] == 1 else 's'}"
    text = f"{ours} {metric.in_words.format(times=times, what=metric.gain)} {theirs}{where}, {pairs}"
    return f"{text} ({'; '.join(_beside(ratio, theirs))})"


def _beside(ratio: Document, theirs: str) -> Iterator[str]:
    """Yields which ratio it is, the other one, and how large the effect is beside the pairs' scatter."""
    yield "ratio of means"
    if ratio["mean"] is not None:
        some = "" if ratio["n"] == ratio["pairs"] else f" of the {ratio['n']} in which {theirs} has some"
        yield f"mean of ratios{some} {_times(ratio['mean'], ratio['mean_95'])}"
    if ratio.get("effect") is not None:
        yield f"{ratio['effect_size']} effect, d = {ratio['effect']:.1f}"


def _times(ratio: float, interval: Sequence[float] | None) -> str:
    return f"{ratio:.2f} ×" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
