"""The list of metrics and alerts in ``docs/live.md``: ``python -m orchestrator.live.docs --write``.

They stand between two comments and are made from what is declared.
"""

import sys

from orchestrator.live.metrics import RUN, Declared, metrics
from orchestrator.live.prometheus.rules import ALERTS
from orchestrator.results import generated_docs

FILE = generated_docs.DOCS / "live.md"


def metric_table() -> str:
    """A row a metric."""
    rows = [
        f"| `{name}` | {_whose(each)} | {each.metric.kind} | {_labels(each)} | {each.metric.help} |"
        for name, each in metrics().items()
    ]
    return "\n".join(["| metric | of | type | labels | meaning |", "| --- | --- | --- | --- | --- |", *rows])


def alert_table() -> str:
    rows = [
        f"| `{each.name}` | {'–' if each.lasts == '0s' else each.lasts} | {_plain(each.text)} |"
        for each in ALERTS
    ]
    return "\n".join(["| alert | if it lasts | meaning |", "| --- | --- | --- |", *rows])


def _whose(declared: Declared) -> str:
    return {RUN: "run", "agent": "agent"}.get(declared.reporter, f"`{declared.reporter}`")


def _labels(declared: Declared) -> str:
    """Without ``app``, which all but those of the run may have."""
    return ", ".join(f"`{name}`" for name in declared.metric.labels) or "–"


def _plain(text: str) -> str:
    """A template of Prometheus for people: its labels as words."""
    for begin in ("{{ if $labels.machine }}{{ $labels.machine }}{{ else }}", "{{ end }}"):
        text = text.replace(begin, "")
    for piece in ("$value | humanizeDuration", "$value | humanize"):
        text = text.replace(f"{{{{ {piece} }}}}", "…")
    return text.replace("{{ $labels.", "*").replace(" }}", "*")


def written(text: str) -> str:
    """Returns ``text`` with all lists up to date."""
    return generated_docs.written(text, MODULE, LISTS)


MODULE = "orchestrator.live.docs"
LISTS = {"metrics": metric_table, "alerts": alert_table}

if __name__ == "__main__":
    sys.exit(generated_docs.main(FILE.name, MODULE, __doc__ or "", LISTS))
