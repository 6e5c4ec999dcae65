"""Reference figures: delivery of EMANE 1.5.3 against distance, and goodput of ns-3.44 (mean of 5 seeds)."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent


class Delivery(NamedTuple):
    """Share of single transmissions that arrive, at -10 dBm over two-ray ground."""

    antenna_height_m: float
    distance_m: float
    rate_mbps: float
    frame_bytes: int
    delivery: float


class Goodput(NamedTuple):
    """``propagation`` is "range" (250/250 m) or "tworay" (250/550 m); ``rts`` says whether RTS/CTS was on."""

    case: str
    propagation: str
    payload: int
    ack_rate: float
    preamble: str
    pairs: int
    hops: int
    rts: bool
    goodput_mbps: float
    failure_probability: float | None

    @property
    def name(self) -> str:
        parts = [self.case, self.propagation, f"{self.payload} B", f"ack {self.ack_rate:g}", self.preamble]
        if self.case == "contention":
            parts.append(f"{self.pairs} pairs")
        if self.case == "hidden":
            parts.append("rts" if self.rts else "no rts")
        if "chain" in self.case:
            parts.append(f"{self.hops} hops")
        return ", ".join(parts)


def emane_delivery() -> list[Delivery]:
    return [
        Delivery(
            float(row["antenna_height_m"]),
            float(row["distance_m"]),
            float(row["rate_mbps"]),
            int(row["frame_bytes"]),
            float(row["delivery"]),
        )
        for row in _rows("emane_delivery.csv")
    ]


def ns3_goodput() -> list[Goodput]:
    return [
        Goodput(
            row["case"],
            row["propagation"],
            int(row["payload"]),
            float(row["ack_rate"]),
            row["preamble"],
            int(row["pairs"]),
            int(row["hops"]),
            row["rts"] == "1",
            float(row["goodput_mbps"]),
            float(row["failure_probability"]) if row["failure_probability"] else None,
        )
        for row in _rows("ns3_80211b.csv")
    ]


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (_HERE / name).open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
