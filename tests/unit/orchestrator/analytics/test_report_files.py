"""Tables of a report as CSV files, which spreadsheets open."""

import csv

import pytest

from orchestrator.analytics.report_files import _csv


@pytest.mark.parametrize(
    "hostile", ['=HYPERLINK("http://x","y")', "@SUM(A1)", "-2+3+cmd|' /C calc'!A0", "\t=1"]
)
def test_what_somebody_else_wrote_is_no_formula(hostile: str) -> None:
    name, cell = csv.reader(_csv([{hostile: hostile}]).decode().splitlines())
    assert name == cell == [f"'{hostile}"]


def test_numbers_and_names_stay_as_they_are() -> None:
    row = {"power": "-5 dBm", "gain": "+3.5", "speed": -1.5, "factor": "k = 3", "none": None, "part": "a-b"}
    names, cells = csv.reader(_csv([row]).decode().splitlines())
    assert names == list(row)
    assert cells == ["-5 dBm", "+3.5", "-1.5", "k = 3", "", "a-b"]
