"""Contributes to the analysis for queries that report faces: the table of faces, its metrics and section."""

from typing import Any

from orchestrator.apps.dataflow.faces.outcomes import has_faces
from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT
from orchestrator.results.contribution import Column, Contribution, Figures, Later, Metric, Section, Table

_HERE = "orchestrator.apps.dataflow.faces"

FACES = Table(
    "faces",
    "a face of a frame that arrived, shown or seen or both: `right`, `missed`, `confused` (known persons), "
    "`rejected`, `false_accept` (strangers), `undetected`, `false_detection`, `unasked`, `unverified` "
    "(truth not known)",
    {
        "run": TEXT,
        "app": TEXT,
        "replica": TEXT,
        "origin": TEXT,
        "tau": COUNT,
        "frame": COUNT,
        "t_ns": COUNT,
        "born_ns": COUNT,
        "latency_ns": COUNT,
        "gallery": TEXT,
        "true_person": TEXT,
        "seen_person": TEXT,
        "known": FLAG,
        "overlap": REAL,
        "score": REAL,
        "distance": REAL,
        "outcome": TEXT,
        "in_window": FLAG,
    },
    ("t_ns", "app", "replica", "origin", "frame", "true_person", "overlap", "score"),
    Later(f"{_HERE}.face_table:faces"),
)

METRICS = (
    Metric(
        "detection_rate",
        "only of queries that report faces: the share of the faces in the arrived frames that were found. A "
        "face is found if a box overlaps the true one by half (intersection over union)",
        better="more",
        averaged=True,
        console=Column(700, "found\n%", 100, 1),
    ),
    Metric(
        "rank1",
        "the share of the found faces of persons in the gallery that got the right name; a face that is "
        "farther than the threshold is called unknown and did not",
        better="more",
        averaged=True,
        console=Column(800, "rank-1\n%", 100, 1),
    ),
    Metric(
        "false_accept_rate",
        "the share of the found faces of strangers, who are not in the gallery, that got a name",
        better="less",
        averaged=True,
    ),
    Metric(
        "faces",
        "the counts behind these, by outcome; `found`: everything that was taken for a face, `named`: those "
        "that got a name, `persons`: how often each name was given (the 50 most frequent; the others add up "
        "to `named_others`); `ground_truth`: whether it is known who was shown; if not, the three shares "
        "above are null; `galleries`: versions that named faces, `unplanned_galleries`: those of them that "
        "are not in the plan, because a replica had an old one",
        shape=dict[str, Any],
        expect=False,
    ),
)

CONTRIBUTION = Contribution(
    kind="query",
    applies=has_faces,
    tables=(FACES,),
    figures=(Figures(Later(f"{_HERE}.face_table:frames"), Later(f"{_HERE}.face_table:values"), METRICS),),
    sections=(Section(300, Later(f"{_HERE}.face_section:faces")),),
)
