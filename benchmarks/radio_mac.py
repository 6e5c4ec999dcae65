"""Compares goodput and failures of our 802.11b medium with ns-3's, each case under its own assumptions."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.radio.facts import Goodput, ns3_goodput
from benchmarks.radio.report import Row, main
from benchmarks.radio.scenarios import Outcome, broadcasting, hidden_terminals, pairs, udp_chain
from benchmarks.radio.tcp_chain import tcp_chain
from orchestrator.radio.presets import ns3_range, ns3_two_ray
from orchestrator.radio.settings import Mac

TOLERANCE = {
    "udp": 0.03,
    "broadcast": 0.03,
    "tcp": 0.15,
    "contention": 0.06,
    "hidden": 0.10,
    "udp chain": 0.15,
    "tcp chain": 0.15,
}
FAILURE_TOLERANCE = 0.03
SEED = 1


def run(fact: Goodput) -> Outcome:
    radio = ns3_range(250.0) if fact.propagation == "range" else ns3_two_ray(250.0, 550.0)
    mac = Mac(
        control_rate=fact.ack_rate,
        short_preamble=fact.preamble == "short",
        rts_from_bytes=0 if fact.rts else None,
        queue_limit=100,
    )
    match fact.case:
        case "udp" | "contention":
            return pairs(radio, mac, fact.pairs, fact.payload, 10.0, SEED)
        case "broadcast":
            return broadcasting(radio, mac, fact.payload, 10.0, SEED)
        case "hidden":
            return hidden_terminals(radio, mac, fact.payload, 15.0, SEED)
        case "udp chain":
            return udp_chain(radio, mac, fact.hops, fact.payload, 20.0, SEED)
        case _:
            return Outcome(tcp_chain(radio, mac, fact.hops, 10.0, SEED), 0.0)


def compare(fact: Goodput) -> dict[str, Any]:
    ours = run(fact)
    ratio = ours.goodput_mbps / fact.goodput_mbps
    within = abs(ratio - 1) <= TOLERANCE[fact.case]
    # Not for hidden terminals: ns-3 fails less often there than we do, and than an independent check of it.
    if fact.case == "contention" and fact.failure_probability is not None:
        within = within and abs(ours.failure_probability - fact.failure_probability) <= FAILURE_TOLERANCE
    known = fact.failure_probability is not None
    return {
        "case": fact.name,
        "ours_mbps": ours.goodput_mbps,
        "ns3_mbps": fact.goodput_mbps,
        "ratio": ratio,
        "tolerance": TOLERANCE[fact.case],
        "ours_failures": ours.failure_probability if known else None,
        "ns3_failures": fact.failure_probability,
        "within": within,
    }


def measure() -> tuple[Mapping[str, Any], Sequence[Row]]:
    rows = [compare(fact) for fact in ns3_goodput()]
    figures = {
        "cases": len(rows),
        "outside": sum(not row["within"] for row in rows),
        "worst_ratio": max((row["ratio"] for row in rows), key=lambda ratio: abs(ratio - 1)),
        "worst_failure_difference": max(
            abs(row["ours_failures"] - row["ns3_failures"])
            for row in rows
            if row["case"].startswith("contention")
        ),
    }
    return figures, rows


if __name__ == "__main__":
    main("Our 802.11b medium beside ns-3", measure)
