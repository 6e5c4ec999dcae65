"""Files of JSON lines read in blocks give what reading line by line gives, whatever is in them."""

import random
from pathlib import Path

import msgspec
import pytest

from node_agent.model.checked import Checked, Refused
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular
from orchestrator.results.lines import Line, blocks_in


class Said(msgspec.Struct):
    number: int
    text: str = ""


CHECKED: Checked[Said] = Checked(Said, LONGEST_LINE)
GOOD = b'{"number":1,"text":"a"}'
ODD = (
    b"",
    b"{",
    b"[1]",
    GOOD + GOOD,
    GOOD + b" " + GOOD,
    b'{"number":\n2}',
    b'{"number":3,"text":"a}\n{"}',
    b'{"number":3,"other":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"number":9}\r',
    b' {"number":4} ',
    b'{"number":null}',
    b'{"number":5,"text":"\xff"}',
    b'{"number":5,"text":"' + b"x" * LONGEST_LINE + b'"}',
    b"x" * (2 * LONGEST_LINE),
)

Found = list[tuple[Line, Said | str]]


def in_blocks(path: Path) -> Found:
    found: Found = []
    with open_regular(path) as file:
        for block in blocks_in(file, CHECKED):
            if block.reason:
                found.append((block.whole, block.reason))
            found += zip(block.lines if block.values else [], block.values, strict=True)
    return found


def line_by_line(path: Path) -> Found:
    found: Found = []
    begin = 0
    with open_regular(path) as file:
        for text in lines_in(file):
            line = Line(begin, file.tell() - begin, text or b"")
            begin = file.tell()
            try:
                found.append((line, CHECKED.decode(text) if text is not None else "size"))
            except Refused as error:
                found.append((line, error.reason))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_blocks_give_what_lines_do(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    lines = [GOOD + b""] * draw.choice([0, 1, 10, 60_000])
    for _ in range(draw.randrange(4)):
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(ODD))
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"\n".join(lines) + draw.choice([b"", b"\n"]))
    assert in_blocks(path) == line_by_line(path)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_line_is_looked_at_by_itself(odd: bytes) -> None:
    assert CHECKED.decode_lines(GOOD + b"\n" + odd + b"\n" + GOOD + b"\n") is None


def test_good_lines_are_decoded_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes((GOOD + b"\n") * 1000)
    with open_regular(path) as file:
        (block,) = blocks_in(file, CHECKED)
    assert len(block.values) == 1000 and block.lines[2] == Line(48, 24, GOOD + b"\n")
