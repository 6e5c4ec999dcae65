"""A path loss out of a user's file holds in namespaces: the radio process loads it, too."""

import json
from pathlib import Path

from tests.unit.rove_process import experiment_file, rove

WALL = """\
import numpy as np
from orchestrator.spec.pathloss import PathLossModel


class Wall(PathLossModel):
    def loss_db(self, distance_m):
        return np.where(distance_m > 250.0, np.inf, 60.0)
"""


def test_links_end_where_a_users_path_loss_says(tmp_path: Path) -> None:
    (tmp_path / "my_losses.py").write_text(WALL)
    topology = {
        "name": "row",
        "nodes": ["a", "b", "c", "d", "e"],
        "area": "1000 m x 100 m",
        "mobility": {"model": "static", "grid": {"columns": 5, "spacing": "200 m"}},
        "radio": {"model": "80211b", "pathloss": {"model": "my_losses.py:Wall"}},
    }
    file = experiment_file(tmp_path, backend="netns", topology=topology, duration="1s", warmup="0s")
    done = rove(tmp_path / "runs", "run", str(file), "--no-analyze", "--json")
    directory = Path(json.loads(done.stdout)["directory"])
    links = [json.loads(line) for line in (directory / "radio" / "links.jsonl").read_text().splitlines()]
    ways = {(link["src"], link["dst"]) for link in links}
    assert ways == {(x, y) for x, y in zip("abcdbcde", "bcdeabcd", strict=True)}
