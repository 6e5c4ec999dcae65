"""Reads files of JSON lines in blocks: a block of good lines is decoded at once, any other line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from typing import Generic, NamedTuple, TypeVar

from node_agent.model.checked import Checked, Refused
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in

T = TypeVar("T")


class Line(NamedTuple):
    """Where a line begins in its file, and its bytes with the line end; empty if it is too long."""

    begin: int
    length: int
    text: bytes


@dataclass(frozen=True)
class Block(Generic[T]):
    """Lines that follow each other, and the value of each; or one bad line, and the reason.

    ``whole``: all of them, as if they were one.
    """

    whole: Line
    values: list[T]
    reason: str = ""

    @cached_property
    def lines(self) -> list[Line]:
        """Returns where each of them is."""
        if len(self.values) < 2:
            return [self.whole]
        found, begin = [], self.whole.begin
        for text in self.whole.text.split(b"\n")[:-1]:
            found.append(Line(begin, len(text) + 1, text + b"\n"))
            begin += len(text) + 1
        return found


def blocks_in(file: BufferedReader, checked: Checked[T]) -> Iterator[Block[T]]:
    """Yields the blocks of a file that is read from its beginning, in order and in bounded memory.

    ``checked`` decodes structs, of lines of at most ``LONGEST_LINE``.
    """
    begin = 0
    while data := file.read(LONGEST_LINE):
        whole = data[: data.rfind(b"\n") + 1]
        values = checked.decode_lines(whole)
        if values is not None:
            yield Block(Line(begin, len(whole), whole), values)
            begin += len(whole)
        else:
            file.seek(begin)
            until = begin + max(len(whole), 1)
            for block in _one_by_one(file, begin, checked):
                yield block
                begin += block.whole.length
                if begin >= until:
                    break
        file.seek(begin)


def _one_by_one(file: BufferedReader, begin: int, checked: Checked[T]) -> Iterator[Block[T]]:
    for text in lines_in(file):
        if text is None:
            length = file.tell() - begin
            yield Block(Line(begin, length, b""), [], "size")
        else:
            length = len(text)
            line = Line(begin, length, text)
            try:
                block = Block(line, [checked.decode(text)])
            except Refused as error:
                block = Block(line, [], error.reason)
            yield block
        begin += length
