"""Hostile file names in a node's listing: each tries to write outside the node's directory."""

import random
from collections.abc import Sequence
from pathlib import Path

ODD = (
    "a\nb",
    "a\n\nb",
    "a\rb",
    "a\0b",
    "a b  c",
    "-rf",
    "--checkpoint-action=exec=sh",
    "\x1b]0;owned\a",
    ".",
    "..",
    "...",
    "",
    " ",
    "x" * 300,
    "/".join("d" * 60),
    "é\udcff",
    "segments/../../../spec.yaml",
    "segments//b0001-s000001.jsonl",
    "./segments/./b0001-s000001.jsonl",
    "segments/b0001-s000001.jsonl/x",
    "con:",
    "$(touch x)",
    "`id`",
    "*",
    "\\..\\..\\x",
    "ended.json/x",
    ".verdict.json.1.tmp",
)


def hostile_name(targets: Sequence[Path], inside: Path, rng: random.Random) -> str:
    """Returns a name for a listing, mostly below ``record``."""
    target = rng.choice(targets)
    climbing = "../" * (len(inside.parts) + 2)
    choice = rng.randrange(10)
    if choice < 3:
        return rng.choice(("record/", "record//", "record/./", "record/segments//")) + str(target).lstrip(
            rng.choice(("", "/"))
        )
    if choice < 5:
        return rng.choice(("record/", "record/segments/", "")) + climbing + str(target).lstrip("/")
    if choice < 6:
        return str(target)
    if choice < 7:
        return "record/" + rng.choice(ODD) + "/" + rng.choice(ODD)
    if choice < 8:
        return rng.choice(ODD)
    return "record/" + rng.choice(ODD)
