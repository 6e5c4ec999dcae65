"""Dashboards are accepted by the types that Grafana publishes: tsc with @grafana/schema, from npm.

They are installed into a temporary folder. No Grafana sees the dashboards here.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live.grafana.document import DASHBOARDS, document
from orchestrator.live.grafana.provisioning import GRAFANA_IMAGE

SCHEMA = GRAFANA_IMAGE.rpartition(":")[2]
PACKAGES = (f"@grafana/schema@{SCHEMA}", "typescript@5.8.3")
PANELS = {
    "timeseries": "timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen",
    "stat": "stat/panelcfg/x/StatPanelCfg_types.gen",
    "state-timeline": "statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen",
    "table": "table/panelcfg/x/TablePanelCfg_types.gen",
}
RAW = "node_modules/@grafana/schema/dist/esm/raw"
HEAD = """
import type { Dashboard, AnnotationQuery, DataSourceRef } from './%(raw)s/dashboard/x/dashboard_types.gen';
%(imports)s
// In JSON an enum is its value.
type Plain<T> = T extends string ? `${T}` : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
// What the data source adds to an annotation is not in the schema.
type Mark = AnnotationQuery & {
  expr: string; step: string; titleFormat: string; textFormat: string; useValueForTime: boolean };
type Ours = Omit<Dashboard, 'annotations'> & { annotations: { list: Mark[] } };
type Target = { refId: string; datasource: DataSourceRef; editorMode: 'code'; expr: string;
  legendFormat: string; instant: boolean; range: boolean; format: 'table' | 'time_series';
  exemplar?: boolean };
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("needs npm and its registry")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    except subprocess.TimeoutExpired:
        pytest.skip("needs npm and its registry")
    if done.returncode != 0:
        pytest.skip("needs npm and its registry")
    return folder


def source(board: dict[str, Any]) -> str:
    """A program with a dashboard, and each panel's options and queries, as values of Grafana's types."""
    imports = [
        f"import type {{ Options as Options{number} }} from './{RAW}/composable/{path}';"
        for number, path in enumerate(PANELS.values())
    ]
    lines = [HEAD % {"imports": "\n".join(imports), "raw": RAW}]
    lines.append(f"export const board: Plain<Ours> = {json.dumps(board)};")
    kinds = list(PANELS)
    for panel in board["panels"]:
        if panel["type"] != "row":
            of_kind = f"Plain<Options{kinds.index(panel['type'])}>"
            lines.append(f"export const a{len(lines)}: {of_kind} = {json.dumps(panel['options'])};")
            lines.append(f"export const a{len(lines)}: Target[] = {json.dumps(panel['targets'])};")
    return "\n".join(lines)


def refused(folder: Path, boards: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What tsc says about each of the dashboards that it does not accept."""
    for name, board in boards.items():
        (folder / f"{name}.ts").write_text(source(board))
    options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "es2022",
        "--moduleResolution",
        "bundler",
    ]
    tsc = folder / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        ["node", tsc, "--target", "es2022", *options, *(f"{name}.ts" for name in boards)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = [line for line in done.stdout.splitlines() if "error" in line]
    assert bool(lines) == (done.returncode != 0), done.stdout + done.stderr
    return {name: line for name in boards for line in reversed(lines) if line.startswith(f"{name}.ts(")}


@pytest.mark.timeout(240)
def test_every_dashboard_is_accepted(installed: Path) -> None:
    assert refused(installed, {board.uid: document(board) for board in DASHBOARDS}) == {}


@pytest.mark.timeout(240)
def test_a_wrong_one_is_refused_for_what_is_wrong(installed: Path) -> None:
    """Else the test above would say nothing."""
    good = document(DASHBOARDS[0])
    panel = good["panels"][1]
    wrong = {
        "key": ({**good, "colour": "red"}, "colour"),
        "version": ({**good, "schemaVersion": "39"}, "number"),
        "place": ({**good, "panels": [{**panel, "gridPos": {"h": 1}}]}, "w, x, y"),
        "options": (
            {**good, "panels": [{**panel, "options": {**panel["options"], "colorMode": "loud"}}]},
            '"loud"',
        ),
        "target": ({**good, "panels": [{**panel, "targets": [{"refId": "A", "query": "up"}]}]}, "query"),
        "mark": ({**good, "annotations": {"list": [{"name": "Switches"}]}}, "missing the following"),
    }
    said = refused(installed, {name: board for name, (board, _) in wrong.items()})
    assert said.keys() == wrong.keys()
    for name, (_, expected) in wrong.items():
        assert expected in said[name]
