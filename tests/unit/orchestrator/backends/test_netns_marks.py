from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.backends.netns.marks import AIR, CONTROL, NODE_NAME, Mark

MARK = Mark("20250101-000000-abcd", Path("/runs/demo/20250101-000000-abcd"))


@given(st.from_regex(NODE_NAME, fullmatch=True) | st.sampled_from([CONTROL, AIR]))
def test_a_name_leads_back_to_its_node(node: str) -> None:
    assert MARK.node_of(MARK.namespace(node)) == node


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rove-foo",
        MARK.group,
        f"{MARK.group}-",
        f"{MARK.group}n01",
        f"{MARK.group}x-n01",
        f"{MARK.group}--n01",
        f"{MARK.group}-n01.bak",
        f"{MARK.group}-n01\n",
        f"{MARK.group}-.control",
        f"{MARK.group}.controls",
        f"x{MARK.group}-n01",
        f"{MARK.group.upper()}-n01",
        f"{MARK.group[:-1]}-n01",
        "n01",
        CONTROL,
    ],
)
def test_what_only_resembles_a_name_of_ours_has_no_node(name: str) -> None:
    assert MARK.node_of(name) is None


def test_the_same_run_id_in_another_directory_is_another_run() -> None:
    namesake = replace(MARK, directory=Path("/runs/other"))
    assert namesake.node_of(MARK.namespace("n01")) is None
    assert namesake.alias("n01") != MARK.alias("n01")


def test_the_longest_names_fit_the_kernels_limits() -> None:
    """A file name has 255 bytes at most, the alias of a link 255."""
    mark, node = Mark("r" * 67, Path("/")), "n" * 63
    assert len(mark.namespace(node)) <= 255
    assert len(mark.alias(node)) <= 255
