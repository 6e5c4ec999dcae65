"""Brings what a run recorded into a form that can be compared: canonical records, and digests of them."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

IGNORED = ("run", "app")
"""Fields of records that may differ."""
RADIO = ("deliveries", "links", "positions")
"""Files of ground truth that digests cover: those that were there when the digests were made."""

Lines = Mapping[str, Sequence[str]]
"""Canonical records, one a line, by where they are from: ``nodes/a``, ``radio/links``."""


class Difference(NamedTuple):
    """Record ``number`` of ``part`` is the first that differs; None: that side has no such record."""

    part: str
    number: int
    before: str | None
    after: str | None

    @property
    def t_ns(self) -> int:
        return min(int(json.loads(line).get("t_ns", 0)) for line in (self.before, self.after) if line)


def canonical(record: dict[str, Any]) -> str:
    kept = {key: value for key, value in record.items() if key not in IGNORED}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def recorded(run: Path) -> dict[str, list[str]]:
    """Returns the records; segments of a node are joined, because their borders do not matter."""
    files = {f"nodes/{node.name}": sorted(node.glob("segments/*.jsonl")) for node in run.glob("nodes/*")}
    files |= {f"radio/{file.stem}": [file] for file in run.glob("radio/*.jsonl") if file.stem in RADIO}
    return {
        part: [canonical(json.loads(line)) for file in files[part] for line in file.read_bytes().splitlines()]
        for part in sorted(files)
    }


def described(lines: Lines) -> dict[str, Any]:
    """Returns digests and counts of what nodes and the radio recorded."""
    return {
        side: _described({p: lines[p] for p in lines if p.startswith(side)}) for side in ("nodes", "radio")
    }


def _described(lines: Lines) -> dict[str, Any]:
    parts = {part: _digest(lines[part]) for part in sorted(lines)}
    kinds = Counter(json.loads(line).get("kind", part) for part in lines for line in lines[part])
    return {
        "sha256": _digest(f"{part} {digest}" for part, digest in parts.items()),
        "records": sum(map(len, lines.values())),
        "kinds": dict(sorted(kinds.items())),
        # One digest for each part, so that one can see whose records differ even if only digests were stored.
        "parts": {part: digest[:16] for part, digest in parts.items()},
    }


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def keep(lines: Lines, folder: Path) -> None:
    for part, records in lines.items():
        file = folder / f"{part}.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress("".join(f"{record}\n" for record in records).encode(), mtime=0))


def kept(folder: Path) -> dict[str, list[str]]:
    """Reads stored records; removes fields that are ignored now and were not when they were stored."""
    return {
        str(file.relative_to(folder)).removesuffix(".jsonl.gz"): [
            canonical(json.loads(line)) for line in gzip.decompress(file.read_bytes()).splitlines()
        ]
        for file in sorted(folder.glob("*/*.jsonl.gz"))
    }


def differences(before: Lines, after: Lines) -> list[Difference]:
    """Returns the first difference of each part, in order of time: later ones may be mere consequences."""
    found = []
    for part in sorted({*before, *after}):
        old, new = before.get(part, []), after.get(part, [])
        same = next(
            (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
        )
        if same < max(len(old), len(new)):
            found.append(
                Difference(
                    part,
                    same,
                    old[same] if same < len(old) else None,
                    new[same] if same < len(new) else None,
                )
            )
    return sorted(found, key=lambda difference: difference.t_ns)
