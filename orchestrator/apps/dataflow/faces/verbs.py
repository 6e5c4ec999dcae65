"""`rove gallery`: the persons of interest that faces are compared with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from orchestrator.answers import Answer, VerbGroup

if TYPE_CHECKING:
    from node_agent.apps.dataflow.faces.gallery import Gallery

DEFAULT_FILE = Path("galleries/people.gallery")

GalleryOption = Annotated[
    Path,
    typer.Option("--gallery", metavar="FILE", help="The gallery's file.", dir_okay=False),
]
Person = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.", show_default=False)]


def add(
    name: Person,
    images: Annotated[
        list[Path],
        typer.Argument(
            metavar="IMAGE",
            help="Pictures of that person, or folders of them: one face in each.",
            show_default=False,
        ),
    ],
    gallery: GalleryOption = DEFAULT_FILE,
) -> Answer:
    """Add pictures of a person to a gallery, which is created if it is not there.

    What recognition compares is computed here, once, and shipped to the nodes as it is. Every picture must
    show exactly one face; if one does not, nothing is changed (exit code 2).

    [bold]Examples[/]

      rove gallery add "Ada L." ada1.jpg ada2.jpg

      rove gallery add Ada pictures/ada/ --gallery experiments/staff.gallery
    """
    # Imported here: completion and --help must not wait for it.
    from orchestrator.apps.dataflow.faces.enrolment import add_pictures

    changed, count = add_pictures(gallery, name, images)
    return _answer(f"{name}: {count} picture{'' if count == 1 else 's'} added", changed, gallery)


def list_persons(gallery: GalleryOption = DEFAULT_FILE) -> Answer:
    """List who is in a gallery, with how many pictures, and the gallery's version.

    [bold]Examples[/]

      rove gallery list

      rove gallery list --gallery experiments/staff.gallery --json
    """
    from orchestrator.apps.dataflow.faces.enrolment import open_gallery

    found = open_gallery(gallery)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("person")
    table.add_column("pictures", justify="right")
    for person, pictures in found.persons.items():
        table.add_row(Text(person), str(pictures))  # a name may look like markup
    return Answer(_document(found, gallery), [table, Text(f"{gallery}: version {found.version}")])


def remove(name: Person, gallery: GalleryOption = DEFAULT_FILE) -> Answer:
    """Remove a person with all pictures.

    [bold]Examples[/]

      rove gallery remove Ada
    """
    from orchestrator.apps.dataflow.faces.enrolment import remove_person

    return _answer(f"{name} removed", remove_person(gallery, name), gallery)


def _answer(what: str, found: "Gallery", file: Path) -> Answer:
    persons, pictures = len(found.persons), len(found.samples)
    text = (
        f"{file}: {persons} person{'' if persons == 1 else 's'}, {pictures}"
        f" picture{'' if pictures == 1 else 's'}, version {found.version}"
    )
    return Answer(_document(found, file), [Text(what), Text(text)])


def _document(found: "Gallery", file: Path) -> dict[str, Any]:
    return {"gallery": str(file), "version": found.version, "persons": found.persons}


GALLERY = VerbGroup(
    "Keep the persons of interest that faces are compared with: add, list, remove.",
    {"add": add, "list": list_persons, "remove": remove},
)
