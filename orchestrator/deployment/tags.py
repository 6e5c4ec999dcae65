"""Decides which wheels fit a node: the tags of PEP 425, 600 and 656 for its Python and platform, the best
first.
"""

from collections.abc import Iterable, Iterator

from packaging.tags import Tag, compatible_tags, cpython_tags

from orchestrator.deployment.facts import NodeFacts

_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}
_OLDEST_GLIBC_ELSEWHERE = 17


def node_tags(facts: NodeFacts) -> tuple[Tag, ...]:
    """Returns a node's tags; only pure Python ones if no published wheel fits, as on Android."""
    python = facts.version[:2]
    platforms = tuple(node_platforms(facts))
    nodot = f"{python[0]}{python[1]}"
    tags: list[Tag] = []
    if facts.implementation == "cpython" and platforms:
        threaded = "t" in facts.abiflags
        abi = f"cp{nodot}{'t' if threaded else ''}"
        for tag in cpython_tags(python, [abi], platforms):
            if not (threaded and tag.abi == "abi3"):  # free-threaded builds have no stable ABI
                tags.append(tag)
    tags += compatible_tags(python, f"cp{nodot}", platforms)
    return tuple(dict.fromkeys(tags))


def node_platforms(facts: NodeFacts) -> Iterator[str]:
    if facts.system != "linux":
        return
    machine = facts.machine
    major, minor = facts.libc_version
    if facts.libc == "glibc" and major == 2:
        oldest = _OLDEST_GLIBC.get(machine, _OLDEST_GLIBC_ELSEWHERE)
        # manylinux on ARM needs armv7l instructions, which armv6l lacks.
        for each in range(minor, oldest - 1, -1) if machine != "armv6l" else ():
            yield f"manylinux_2_{each}_{machine}"
            if (2, each) in _LEGACY:
                yield f"{_LEGACY[2, each]}_{machine}"
    elif facts.libc == "musl":
        for each in range(minor, -1, -1):
            yield f"musllinux_{major}_{each}_{machine}"
    yield f"linux_{machine}"


def is_local(tag: Tag) -> bool:
    """Says whether a wheel was built for similar machines only, without a stated C library version."""
    return tag.platform.startswith("linux_")


def fitting(offered: Iterable[Tag], supported: tuple[Tag, ...]) -> int | None:
    """Returns the rank of the best tag, 0 being the best; None: the wheel does not fit."""
    known = {tag: rank for rank, tag in enumerate(supported)}
    return min((known[tag] for tag in offered if tag in known), default=None)
