"""The gallery of the synthetic scene's persons of interest, of pictures that the scene never shows."""

from functools import cache

from node_agent.apps.dataflow.faces.enrolment import enrol
from node_agent.apps.dataflow.faces.gallery import Gallery, Sample
from node_agent.apps.dataflow.faces.pixels import BadImage, encode_png
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings


@cache
def scene_gallery(persons: int, enrolled: int) -> Gallery:
    """Returns the gallery, made once in a process. Raises ModelMissing."""
    samples: list[Sample] = []
    settings = SceneSettings(persons=persons, enrolled=enrolled, strangers=0)
    for person, picture in Scene(settings).enrolment():
        try:
            samples.append(enrol(person, encode_png(picture)))
        except BadImage:  # no face found in this picture: others of the person are left
            continue
    return Gallery(tuple(samples))
