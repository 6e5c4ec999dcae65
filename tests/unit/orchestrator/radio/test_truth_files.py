"""The record of the true links can be read while it is written."""

import json
from pathlib import Path

from orchestrator.radio.truth import LinkUse, TruthRecorder


def test_each_sample_can_be_read_at_once(tmp_path: Path) -> None:
    recorder = TruthRecorder(tmp_path)
    recorder.links(1, {"a": {"b": 1.0}})
    recorder.positions(1, {"a": (0.0, 1.0), "b": (2.0, 3.0)})
    recorder.deliveries(1, [LinkUse("a", "b", 3, 2, 0.5, 10.0)])
    recorder.airtimes(1, {"a": 5, "b": 0})
    recorder.airtimes(2, {"a": 5, "b": 7})
    lines = {path.stem: len(path.read_text().splitlines()) for path in tmp_path.iterdir()}
    assert lines == {"positions": 2, "links": 1, "deliveries": 1, "airtime": 2}
    assert json.loads((tmp_path / "airtime.jsonl").read_text().splitlines()[1]) == {
        "t_ns": 2,
        "node": "b",
        "sent_ns": 7,
    }
    recorder.close()
