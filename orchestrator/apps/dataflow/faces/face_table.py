"""Computes what became of every face in the pictures that arrived: found or not, named correctly or not.

A seen face counts as a shown one if each is the other's best match and their boxes overlap by half
(intersection over union). A person in the run's galleries is *known*, everybody else a *stranger*.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.faces.outcomes import (
    CONFUSED,
    FALSE_ACCEPT,
    FALSE_DETECTION,
    MISSED,
    REJECTED,
    RIGHT,
    UNASKED,
    UNDETECTED,
    UNVERIFIED,
    galleries_of,
)
from orchestrator.results.columns import TEXT
from orchestrator.results.contribution import Rows
from orchestrator.results.inputs import AppInput
from orchestrator.results.spark import Ingest, Reading, Subject, in_window

LEAST_OVERLAP = 0.5
MOST_PERSONS = 50
"""How many persons have their own counts in a summary; the others are summed up."""
FRAME = ("run", "app", "replica", "origin", "frame")


def _known_persons(ingest: Ingest) -> DataFrame:
    rows = [
        {"run": run.run, "app": app.name, "true_person": person}
        for run in ingest.runs
        for app in run.apps.values()
        for person in sorted({person for persons in galleries_of(app).values() for person in persons})
    ]
    return ingest.frame(rows, {"run": TEXT, "app": TEXT, "true_person": TEXT})


def faces(ingest: Ingest) -> DataFrame:
    """Returns one row for each face, shown or seen or both, of a frame that arrived; a frame that arrived
    twice counts once.
    """
    known = _known_persons(ingest)
    arrived = _first_arrivals(ingest.records("faces_seen"))
    shown_frames = ingest.records("faces_true").select("run", "app", "origin", "frame", "faces")
    shown = shown_frames.select(
        "run", "app", "origin", "frame", F.posexplode("faces").alias("shown", "truth")
    )
    frames = arrived.drop("faces")
    seen = arrived.select(*FRAME, F.posexplode("faces").alias("seen", "face"))
    matches = _matches(seen, shown)
    found = matches.join(seen, [*FRAME, "seen"]).select(*FRAME, "shown", "overlap", "face")
    of_truth = frames.join(shown, ["run", "app", "origin", "frame"]).join(found, [*FRAME, "shown"], "left")
    verifiable = shown_frames.select("run", "app", "origin", "frame", F.lit(True).alias("verifiable"))
    others = (
        frames.join(seen.join(matches, [*FRAME, "seen"], "left_anti"), list(FRAME))
        .join(verifiable, ["run", "app", "origin", "frame"], "left")
        .drop("seen")
    )
    judged = (
        of_truth.withColumn("verifiable", F.lit(True))
        .drop("shown")
        .unionByName(others, allowMissingColumns=True)
        .withColumns(
            {
                "true_person": F.col("truth.person"),
                "seen_person": F.col("face.person"),
                "score": F.col("face.score"),
                "distance": F.col("face.distance"),
            }
        )
        .join(F.broadcast(known.withColumn("known", F.lit(True))), ["run", "app", "true_person"], "left")
        .withColumn("known", F.coalesce("known", F.lit(False)))
        .withColumn("outcome", _outcome())
    )
    return ingest.timed(judged).withColumn("in_window", in_window("born_ns"))


def _first_arrivals(records: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*FRAME).orderBy("t_ns", "boot", "seq")
    return (
        records.withColumn("arrival", F.row_number().over(in_order))
        .where("arrival = 1")
        .withColumn("born_ns", F.col("t_ns") - F.col("latency_ns"))
        .select(*FRAME, "tau", "t_ns", "born_ns", "latency_ns", "gallery", "faces")
    )


def _matches(seen: DataFrame, shown: DataFrame) -> DataFrame:
    """Returns pairs of which each is the other's best match; among equals, the first."""
    pairs = seen.join(shown, ["run", "app", "origin", "frame"]).withColumn(
        "overlap", _overlap("face", "truth")
    )
    best_seen = Window.partitionBy(*FRAME, "shown").orderBy(F.desc("overlap"), "seen")
    best_shown = Window.partitionBy(*FRAME, "seen").orderBy(F.desc("overlap"), "shown")
    return (
        pairs.where(F.col("overlap") >= LEAST_OVERLAP)
        .withColumns({"of_shown": F.row_number().over(best_seen), "of_seen": F.row_number().over(best_shown)})
        .where("of_shown = 1 and of_seen = 1")
        .select(*FRAME, "seen", "shown", "overlap")
    )


def _overlap(one: str, other: str) -> Column:
    """Returns the intersection over union of two boxes."""

    def side(begin: str, length: str) -> Column:
        ends = (F.col(f"{box}.{begin}") + F.col(f"{box}.{length}") for box in (one, other))
        begins = (F.col(f"{box}.{begin}") for box in (one, other))
        return F.greatest(F.least(*ends) - F.greatest(*begins), F.lit(0.0))

    def area(box: str) -> Column:
        return F.col(f"{box}.width") * F.col(f"{box}.height")

    common = side("x", "width") * side("y", "height")
    return F.try_divide(common, area(one) + area(other) - common)


def _outcome() -> Column:
    named, is_known = F.col("seen_person"), F.col("known")
    return (
        F.when(F.col("truth").isNull() & F.col("verifiable"), FALSE_DETECTION)
        .when(F.col("truth").isNull(), UNVERIFIED)
        .when(F.col("face").isNull(), UNDETECTED)
        .when(named.isNull(), UNASKED)
        .when(is_known & (named == F.col("true_person")), RIGHT)
        .when(is_known & (named == ""), MISSED)
        .when(is_known, CONFUSED)
        .when(named == "", REJECTED)
        .otherwise(FALSE_ACCEPT)
    )


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    """Counts persons, outcomes and galleries, for frames taken in the measured window."""
    in_time = reading.table("faces").where("in_window")
    alike = in_time.groupBy("run", "app", "outcome", "gallery", "seen_person")
    return {"counted": alike.agg(F.count("*").alias("faces"))}


def values(subject: Subject, found: Mapping[str, Rows]) -> Mapping[str, Any]:
    """Returns shares, and the counts behind them.

    ``unplanned_galleries``: versions that named faces and are not in the plan: a replica had an old one.
    ``persons``: how often each name was given, most often first.
    """
    assert subject.app is not None
    rows = sorted(
        found["counted"], key=lambda row: (row["outcome"], row["gallery"], row["seen_person"] or "")
    )
    outcomes: dict[str, int] = {}
    persons: dict[str, int] = {}
    for row in rows:
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + row["faces"]
        if person := row["seen_person"]:
            persons[person] = persons.get(person, 0) + row["faces"]
    named = sum(persons.values())
    often = dict(sorted(persons.items(), key=lambda each: (-each[1], each[0]))[:MOST_PERSONS])
    shown = sum(count for name, count in outcomes.items() if name not in (FALSE_DETECTION, UNVERIFIED))
    known = sum(outcomes.get(name, 0) for name in (RIGHT, MISSED, CONFUSED))
    strangers = sum(outcomes.get(name, 0) for name in (REJECTED, FALSE_ACCEPT))
    # Frames that were joined carry the versions of all their inputs.
    used = sorted({version for row in rows for version in row["gallery"].split("+") if version})
    planned = galleries_of(subject.app)
    return {
        "detection_rate": _share(shown - outcomes.get(UNDETECTED, 0), shown),
        "rank1": _share(outcomes.get(RIGHT, 0), known),
        "false_accept_rate": _share(outcomes.get(FALSE_ACCEPT, 0), strangers),
        "faces": {
            "ground_truth": _is_judged(subject.app, outcomes),
            "found": sum(outcomes.values()) - outcomes.get(UNDETECTED, 0),
            "named": named,
            "persons": often,
            "named_others": named - sum(often.values()),
            "shown": shown,
            "outcomes": outcomes,
            "galleries": used,
            "unplanned_galleries": [version for version in used if version not in planned],
        },
    }


def _is_judged(app: AppInput, outcomes: dict[str, int]) -> bool:
    """Says whether there is ground truth: by the faces or, if there are none, by the kind of source."""
    if outcomes:
        return set(outcomes) != {UNVERIFIED}
    return any(o.kind == "synthetic_scene" for o in app.plan.query.operators)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 9) if whole else None
