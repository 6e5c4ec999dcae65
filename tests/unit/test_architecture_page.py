"""The page that explains the house names files, folders and rooms that exist."""

import re
from pathlib import Path

import pytest

from tests.unit.test_layers import NODE_AGENT, ORCHESTRATOR

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
TEXT = PAGE.read_text()


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 25
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_every_path_in_the_text_exists() -> None:
    paths = re.findall(r"`((?:node_agent|orchestrator|tests)/[\w./-]*)`", TEXT)
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_page() -> None:
    tables = TEXT.partition("## One frame's way")[0]
    rooms = [room.partition(".")[2] for room in (*NODE_AGENT, *ORCHESTRATOR)]
    missing = [room for room in rooms if room and f"`{room.replace('.', '/')}`" not in tables]
    assert [room for room in missing if not room.startswith("apps.")] == []
