"""Quantities as people write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from orchestrator.spec.problems import Unusable
from orchestrator.spec.units import (
    BIT_RATE,
    DURATION,
    FREQUENCY,
    GAIN,
    LENGTH,
    LEVEL,
    POWER,
    RATE,
    SIZE,
    SPEED,
    Duration,
    Quantity,
    Size,
)

ALL = (BIT_RATE, DURATION, FREQUENCY, GAIN, LENGTH, LEVEL, POWER, RATE, SIZE, SPEED)


@pytest.mark.parametrize(
    ("quantity", "written", "expected"),
    [
        (DURATION, "120s", 120),
        (DURATION, "2 min", 120),
        (DURATION, "500 ms", 0.5),
        (DURATION, "20 ms", 0.02),
        (DURATION, "1.5 h", 5400),
        (DURATION, ".5s", 0.5),
        (DURATION, "1e-3 s", 0.001),
        (DURATION, "7", 7),
        (DURATION, 7, 7),
        (DURATION, 0.25, 0.25),
        (SPEED, "10 m/s", 10),
        (SPEED, "36 km/h", 10),
        (LENGTH, "1.2 km", 1200),
        (LENGTH, "50 cm", 0.5),
        (BIT_RATE, "11 Mb/s", 11_000_000),
        (BIT_RATE, "11 Mbit/s", 11_000_000),
        (BIT_RATE, "5.5Mbps", 5_500_000),
        (POWER, "-10 dBm", -10),
        (POWER, "−10 dBm", -10),
        (POWER, "100 mW", 20),
        (POWER, "0.1 W", 20),
        (POWER, -10, -10),
        (LEVEL, "-4 dB", -4),
        (GAIN, "2 dBi", 2),
        (FREQUENCY, "2.4 GHz", 2.4e9),
        (SIZE, "32 kB", 32_000),
        (SIZE, "8 KiB", 8192),
        (SIZE, "1.5 kB", 1500),
        (RATE, "10 /s", 10),
        (RATE, "10/s", 10),
        (RATE, "10 fps", 10),
        (RATE, "30 /min", 0.5),
    ],
)
def test_written_like_this(quantity: Quantity, written: Any, expected: float) -> None:
    assert quantity.read(written) == pytest.approx(expected, rel=1e-15)


def test_the_same_value_in_other_units_is_the_same_number() -> None:
    assert DURATION.read("500 ms") == DURATION.read("0.5 s")
    assert DURATION.read("5 ms") == 0.005
    assert LENGTH.read("1.2 km") == LENGTH.read("1200 m")
    assert SPEED.read("18 km/h") == SPEED.read("5 m/s")


@pytest.mark.parametrize(
    ("quantity", "written", "message"),
    [
        (DURATION, "10 m", 'unknown unit "m"'),
        (DURATION, "soon", "is not a duration"),
        (DURATION, "", "is not a duration"),
        (DURATION, "1:30", "is not a duration"),
        (DURATION, True, "is not a duration"),
        (DURATION, None, "is not a duration"),
        (DURATION, [1], "is not a duration"),
        (DURATION, "-1s", "too small"),
        (DURATION, "1000 h", "too large"),
        (DURATION, float("nan"), "not a finite number"),
        (DURATION, float("inf"), "not a finite number"),
        (DURATION, "1e999 s", "not a finite number"),
        (DURATION, "nan s", "is not a duration"),
        (POWER, "300 dBm", "too large: it must be at most 60 dBm"),
        (POWER, "0 mW", "too small"),
        (POWER, "-5 W", "too small"),
        (POWER, "2 V", 'unknown unit "V"'),
        (SIZE, "0.5 B", "not a whole number of bytes"),
        (SIZE, "32 kb", 'unknown unit "kb"'),
        (SIZE, "100 MB", "too large"),
        (RATE, 0, "must be more than 0"),
        (BIT_RATE, "1 MB/s", 'unknown unit "MB/s"'),
        (LENGTH, "٣ m", "is not a length"),
    ],
)
def test_refused(quantity: Quantity, written: Any, message: str) -> None:
    with pytest.raises(Unusable, match=message):
        quantity.read(written)


def test_the_hint_knows_units_in_the_wrong_case() -> None:
    with pytest.raises(Unusable) as raised:
        BIT_RATE.read("11 mb/s")
    assert raised.value.findings[0].hint == 'did you mean "Mb/s"?'


@given(st.one_of(st.text(max_size=20), st.floats(), st.integers(), st.booleans(), st.none()))
def test_whatever_comes_is_a_number_within_bounds_or_refused(value: object) -> None:
    for quantity in ALL:
        try:
            number = quantity.read(value)
        except Unusable as error:
            assert error.findings[0].message
        else:
            assert quantity.low <= number <= quantity.high


@given(st.floats(min_value=0, max_value=86400))
def test_a_bare_number_is_in_the_base_unit(number: float) -> None:
    assert DURATION.read(number) == DURATION.read(repr(number)) == DURATION.read(f"{number!r} s") == number


def test_json_schema_takes_numbers_and_text() -> None:
    schema = TypeAdapter(Duration).json_schema()
    assert [branch["type"] for branch in schema["anyOf"]] == ["number", "string"]
    assert schema["examples"] == ["120s", "2 min", "500 ms"]
    assert TypeAdapter(Size).json_schema()["anyOf"][0]["type"] == "integer"
