"""Measures detection and recognition on the ORL faces (AT&T Laboratories Cambridge), shown in video frames.

Needs the ``faces`` extra. The split of people and pictures is part of the output; see ``faces_protocol``.
"""

import time
from collections.abc import Callable
from statistics import quantiles

# Imported because the memory of 25 agents includes an agent's own modules.
import node_agent.agent.agent
import node_agent.apps.dataflow.application  # noqa: F401
from benchmarks.shared.faces_memory import pss_mb
from benchmarks.shared.faces_protocol import (
    DEVELOPMENT,
    ENROLLED,
    EVALUATION,
    FACE_WIDTHS,
    HEIGHT,
    PROBES,
    QUALITY,
    WIDTH,
    Answers,
    Seen,
    View,
    ask,
    gallery_of,
    look,
    views,
)
from benchmarks.shared.harness import Figures, main
from node_agent.apps.dataflow.faces.detection import shared_detector
from node_agent.apps.dataflow.faces.embedding import shared_embedder
from node_agent.apps.dataflow.faces.gallery import EMBEDDING_THRESHOLD, Gallery
from node_agent.apps.dataflow.faces.people import find_people
from node_agent.apps.dataflow.faces.pixels import decode_image
from node_agent.apps.dataflow.faces.recognition import Recogniser

AGENTS, FRAMES_EACH, TIMED_FRAMES = 25, 8, 200
METHODS = ("embedding", "lbph")
SMALLER_GALLERIES = (1, 3)  # pictures of each person


def chosen(answers: Answers) -> float:
    """Returns the largest threshold, in hundredths, that accepts no stranger among the development people."""
    hundredths = 0
    while answers.false_accepts((hundredths + 1) / 100) == 0:
        hundredths += 1
    return hundredths / 100


def look_at(shown: list[View]) -> list[Seen]:
    return [look(view, shared_detector(), shared_embedder()) for view in shown]


def both_methods(gallery: Gallery, seen: list[Seen]) -> tuple[Answers, Answers]:
    embedding, lbph = (ask(gallery, seen, method) for method in METHODS)
    return embedding, lbph


def measure() -> Figures:
    people = find_people()
    if people.kind != "orl":
        raise SystemExit("the ORL faces are not installed: pip install 'rove-testbed[faces]'")
    tuned = both_methods(gallery_of(people, DEVELOPMENT), look_at(views(people, DEVELOPMENT)))
    embedding_threshold, lbph_threshold = (chosen(answers) for answers in tuned)
    shown = views(people, EVALUATION)
    gallery = gallery_of(people, EVALUATION)
    seen = look_at(shown)
    by_embedding, by_lbph = both_methods(gallery, seen)
    smaller: dict[str, float] = {}
    for pictures in SMALLER_GALLERIES:
        answers = both_methods(gallery_of(people, EVALUATION, range(pictures)), seen)
        for method, each in zip(METHODS, answers, strict=True):
            smaller[f"rank1_{method}_of_{pictures}"] = each.rank1()
    recogniser = Recogniser(gallery)
    images = [decode_image(view.jpeg) for view in shown[:TIMED_FRAMES]]

    def detect_and_embed(number: int) -> None:
        image = images[number]
        shared_embedder().embed(image, shared_detector().detect(image))

    def agent() -> None:
        for view in shown[:FRAMES_EACH]:
            image = decode_image(view.jpeg)
            recogniser.recognise(image, shared_detector().detect(image))

    typical, undisturbed = cpu_ms(detect_and_embed, len(images))
    return {
        "benchmark": "faces",
        "people_development": f"{DEVELOPMENT[0]}-{DEVELOPMENT[-1]}",
        "people_evaluation": f"{EVALUATION[0]}-{EVALUATION[-1]}",
        "gallery_pictures": f"{len(ENROLLED)} x {len(EVALUATION)} people",
        "probe_pictures": f"{len(PROBES)} x {len(EVALUATION)} people",
        "stranger_pictures": f"{len(by_embedding.strangers)}, each asked of the others' gallery",
        "frames": f"{WIDTH}x{HEIGHT} JPEG {QUALITY}, portraits {FACE_WIDTHS[0]}-{FACE_WIDTHS[1]} px wide",
        "threshold_embedding": embedding_threshold,
        "threshold_lbph": lbph_threshold,
        "detection": sum(each.found is not None for each in seen) / len(seen),
        "false_detections": sum(each.elsewhere for each in seen),
        "rank1_embedding": by_embedding.rank1(),
        "rank1_lbph": by_lbph.rank1(),
        "false_accepts": by_embedding.false_accepts(embedding_threshold),
        "false_accepts_lbph": by_lbph.false_accepts(lbph_threshold),
        "named_embedding": by_embedding.named(embedding_threshold),
        "named_lbph": by_lbph.named(lbph_threshold),
        "threshold_shipped": EMBEDDING_THRESHOLD,
        "false_accepts_shipped": by_embedding.false_accepts(EMBEDDING_THRESHOLD),
        "named_shipped": by_embedding.named(EMBEDDING_THRESHOLD),
        "rank1_embedding_develop": tuned[0].rank1(),
        "rank1_lbph_develop": tuned[1].rank1(),
        **smaller,
        "cpu_ms_per_frame": typical,
        "cpu_ms_lower_quartile": undisturbed,
        "pss_mb_25_agents": pss_mb(AGENTS, agent),
    }


def cpu_ms(work: Callable[[int], object], times: int) -> tuple[float, float]:
    """Returns median and lower quartile. Other load on the machine only adds to CPU time: if the two differ
    much, the machine was busy.
    """
    took = []
    for number in range(times):
        started = time.process_time()
        work(number)
        took.append((time.process_time() - started) * 1e3)
    quartile, middle, _ = quantiles(took, n=4)
    return middle, quartile


if __name__ == "__main__":
    main("faces: detection and recognition of ORL faces in video frames", measure)
