"""Prometheus and real nodes: while a node is cut off it cannot be scraped, and its records close the gap."""

import shutil
import time
from pathlib import Path

import pytest

from tests.prometheus.served import SCRAPE_S, Served, back_filled, check_complete, check_gap
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab

pytestmark = [
    pytest.mark.timeout(TEST_S),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus"),
]


def test_records_close_the_gap_of_a_partition(lab: Lab, tmp_path: Path) -> None:
    node = lab.node("n02")
    with Served(lab.environment) as served:
        with Drill(lab, "scraped", duration="180s", lease="60s") as drill:
            drill.reach("measure")
            up = f'up{{job="rove", run="{drill.run.id}", node="{node.name}"}}'
            served.wait_for(f"count_over_time({up}[1m]) >= 2 and {up} == 1", "the node is scraped")
            node.pull_cable()
            try:
                begin = time.time()
                time.sleep(2 * SCRAPE_S)
                end = time.time()
                served.wait_for(f"{up} == 0", "the node does not answer")
            finally:
                node.plug_cable()
            served.wait_for(f"{up} == 1", "the node is back")
            served.wait_for(
                f'rove_node_up{{run="{drill.run.id}", node="{node.name}"}} == 1', "it is ok again"
            )
            drill.process.terminate()  # all was seen
            drill.finish()
        scraped = served.query(f'rove_queue_length{{run="{drill.run.id}", node="{node.name}"}}[10m]')
    lines = back_filled(drill.run, tmp_path, lab.environment)
    check_complete(drill.run, [each.name for each in lab.nodes], lines)
    check_gap(scraped, lines, node.name, begin + 1, end)
