"""The ORL faces (AT&T Laboratories Cambridge) of the installed package, for tests that need real faces."""

import numpy as np

from node_agent.apps.dataflow.faces.people import find_people
from node_agent.apps.dataflow.faces.pixels import Image, fit


def portrait(person: int, picture: int = 0) -> Image:
    """As it is in the database: 92 × 112 pixels."""
    people = find_people()
    assert people.kind == "orl", "the faces extra is not installed"
    return people.picture(f"s{person}", picture)


def frame(*persons: int, picture: int = 0, height: int = 240) -> Image:
    """Portraits side by side before a grey wall; as wide as it needs to be, at least 320 pixels."""
    portraits = [fit(portrait(person, picture), 168, 168) for person in persons]
    image = np.full((height, max(320, 160 * len(portraits)), 3), 120, np.uint8)
    for place, each in enumerate(portraits):
        tall, wide = each.shape[:2]
        image[36 : 36 + tall, 160 * place + 10 : 160 * place + 10 + wide] = each
    return image
