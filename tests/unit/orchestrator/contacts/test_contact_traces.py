"""Contact traces of three formats, and what is said about files that cannot be used."""

import pytest

from orchestrator.contacts import traces
from orchestrator.contacts.traces import TraceFormat, format_of, read_contacts


def problems(text: str, written_as: TraceFormat, merge: bool = False) -> list[tuple[int | None, str]]:
    found = [(problem.line, problem.message) for problem in read_contacts(text, written_as, merge).problems]
    return sorted(found, key=lambda problem: problem[0] or 0)


def meetings(text: str, written_as: TraceFormat, merge: bool = False) -> list[tuple[str, str, float, float]]:
    trace = read_contacts(text, written_as, merge)
    assert trace.problems == []
    return [meeting[:4] for meeting in trace.meetings]


def test_csv() -> None:
    text = "from,to,t_up,t_down\n# morning\nbus, base ,20,80.5\n\nbase,bus,380,440\n"
    assert meetings(text, "csv") == [("bus", "base", 20.0, 80.5), ("base", "bus", 380.0, 440.0)]


def test_one_simulators_report() -> None:
    text = (
        "10.0 CONN p0 p1 up\n10.0 C M1 p0 p1 500\n12.5 CONN p2 p0 up\n30.0 CONN p1 p0 down\n"
        "30.0 CONN p3 p4 up\n30.0 CONN p3 p4 down\n40.0 CONN p0 p1 up\n60.0 CONN p5 p6 up\n"
    )
    # p0 and p1 are together at the end: that is when the file ends.
    assert meetings(text, "one") == [
        ("p0", "p1", 10.0, 30.0),
        ("p0", "p2", 12.5, 60.0),
        ("p0", "p1", 40.0, 60.0),
    ]


def test_crawdad_lists_what_each_node_saw() -> None:
    text = "1 8 121 121 1 0\n1\t3\t236\t347\t1\t0\n3 1 240 400 1 0\n"
    assert meetings(text, "crawdad") == [("1", "8", 121, 121), ("1", "3", 236, 347), ("3", "1", 240, 400)]


def test_every_problem_is_told_with_its_line() -> None:
    text = "from,to,t_up,t_down\na,b,10,20\na,b,15,30\na,b,50,40\na,a,1,2\na,b,x,3\na,b,nan,3\na,b,1\n"
    assert problems(text, "csv") == [
        (3, "a and b meet at 15 s, but are together from 10 to 20 s already (line 2)"),
        (4, "goes down at 40 s, but up only at 50 s"),
        (5, "a meets itself"),
        (6, "t_up is not a number: 'x'"),
        (7, "t_up is not a time in seconds: 'nan'"),
        (8, "3 values, expected 4: from,to,t_up,t_down"),
    ]


def test_overlaps_can_be_merged() -> None:
    text = "from,to,t_up,t_down\na,b,10,20\nb,a,15,30\n"
    assert problems(text, "csv") and len(meetings(text, "csv", merge=True)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 CONN a b up\n5 CONN a c up\n", (2, "time runs backwards: 5 s after 10 s")),
        ("10 CONN a b up\n11 CONN b a up\n", (2, "b and a are connected already (see line 1)")),
        ("10 CONN a b down\n", (1, "a and b part, but are not connected")),
        ("10 CONN a b sideways\n", (1, "not a line of a connectivity report")),
        ("10 CONN a a up\n20 CONN a a down\n", (1, "a meets itself")),
    ],
)
def test_reports_that_contradict_themselves(text: str, expected: tuple[int, str]) -> None:
    assert problems(text, "one")[0] == expected


@pytest.mark.parametrize(
    ("text", "written_as", "expected"),
    [
        ("", "csv", (None, "holds no contact")),
        ("from,to,t_up,t_down\n", "csv", (None, "holds no contact")),
        ("a,b,1,2\n", "csv", (1, "the first line must be from,to,t_up,t_down")),
        ("# nothing\n", "one", (None, "holds no contact")),
        ("1 2 3\n", "crawdad", (1, "3 values, expected at least 4: id id start end")),
        ("1 2 9 3\n", "crawdad", (1, "ends at 3 s, but begins only at 9 s")),
        ("1 2 9 1e300\n", "crawdad", (1, "end is not a time in seconds: '1e300'")),
    ],
)
def test_files_without_a_usable_contact(
    text: str, written_as: TraceFormat, expected: tuple[int | None, str]
) -> None:
    assert problems(text, written_as)[0] == expected


def test_what_is_told_and_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(problems("nonsense\n" * 1000, "one")) == traces.MOST_PROBLEMS
    monkeypatch.setattr(traces, "MOST_CONTACTS", 10)
    text = "".join(f"1 2 {2 * at} {2 * at + 1}\n" for at in range(100))
    assert problems(text, "crawdad") == [(None, "more than 10 contacts: that is too many")]


def test_the_name_tells_the_format() -> None:
    names = (
        "a.csv",
        "a.CSV.gz",
        "x.one",
        "default_scenario_ConnectivityONEReport.txt",
        "contacts.Exp1.dat",
        "x.txt",
    )
    assert [format_of(name) for name in names] == ["csv", "csv", "one", "one", "crawdad", None]
