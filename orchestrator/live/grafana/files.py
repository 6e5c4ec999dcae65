"""The files of the folder ``dashboards``, as text; only the tests of its rules are written by hand."""

import json
from pathlib import Path

from orchestrator.live.grafana import provisioning
from orchestrator.live.grafana.document import DASHBOARDS, document
from orchestrator.live.prometheus import rules

FOLDER = Path(__file__).parents[3] / "dashboards"
_MADE = "# Made by python -m orchestrator.live.grafana --write\n"


def files() -> dict[str, str]:
    """Returns the text of each file, by its path in the folder."""
    boards = {
        f"grafana/dashboards/{board.uid}.json": json.dumps(document(board), indent=1, ensure_ascii=False)
        + "\n"
        for board in DASHBOARDS
    }
    setup = {
        "compose.yml": provisioning.compose(),
        "grafana/provisioning/datasources/rove.yml": provisioning.datasources(),
        "grafana/provisioning/dashboards/rove.yml": provisioning.dashboards(),
        "grafana/provisioning/alerting/rove.yml": provisioning.alerts(),
        "prometheus/prometheus.yml": provisioning.prometheus(),
        "prometheus/rules.yml": rules.text(),
    }
    return {**boards, **{path: _MADE + text for path, text in setup.items()}}


def outdated(folder: Path = FOLDER) -> list[str]:
    """Returns the paths of files that are missing or differ."""
    return [path for path, text in files().items() if _read(folder / path) != text]


def write(folder: Path = FOLDER) -> None:
    for path, text in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
