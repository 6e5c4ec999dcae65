"""Makes a gallery's sample of a person's picture."""

from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.alignment import align, small_grey
from node_agent.apps.dataflow.faces.detection import shared_detector
from node_agent.apps.dataflow.faces.embedding import shared_embedder
from node_agent.apps.dataflow.faces.gallery import Sample, sample
from node_agent.apps.dataflow.faces.pixels import BadImage, Image, decode_image, fit

# Pictures are brought to this size (longer side, in pixels) before a face is looked for.
SMALLEST, LARGEST = 320, 960


def enrol(person: str, picture: bytes) -> Sample:
    """From a picture file; see ``enrol_image``."""
    return enrol_image(person, decode_image(picture))


def enrol_image(person: str, image: Image) -> Sample:
    """Raises BadImage if the picture does not show exactly one face, BadGallery if the name cannot be used,
    ModelMissing."""
    image = fit(image, SMALLEST, LARGEST)
    faces = shared_detector().detect(image)
    if len(faces) != 1:
        raise BadImage(f"{len(faces) or 'no'} faces found: a picture for the gallery must show exactly one")
    crop = align(image, faces[0])
    embedding = shared_embedder().embed_crops([crop])[0]
    return sample(person, embedding, lbph.histogram(small_grey(crop, lbph.SIDE)))
