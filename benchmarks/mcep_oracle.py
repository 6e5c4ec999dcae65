"""Holds what the machines of a query deliver against an offline oracle, on random walks.

With random operator graphs, policies, conditions and ways to find where streams begin; each walk runs with
and without suppression where it is complete. In one of five, brokers crash or links are cut: then results
may be missing, never wrong. ``missing``, ``surplus``: results that differ from those of the oracle, in
walks that promise completeness; ``inconsistent``: results with ancestors outside of the processing
interest; ``out_of_order``: against the order that was asked for. ``baseline_inconsistent``: of the same
walks with a range query that moves without markers.
"""

import argparse
import sys
from collections import Counter
from typing import Any

from benchmarks.mcep.network import Network, Outcome
from benchmarks.mcep.oracle import Oracle
from benchmarks.mcep.worlds import World, lies_in, world
from benchmarks.radio.report import Row, show
from node_agent.apps.mcep.model import Event

WALKS = 1000
WRONG = ("missing", "surplus", "inconsistent", "out_of_order")


def row(made: World) -> Row:
    outcome = Network(made).run()
    return {
        "seed": made.seed,
        "completeness": made.query.policy.completeness,
        "order": made.query.policy.order,
        "suppression": made.query.policy.suppression,
        "points": made.points,
        "rough": bool(made.faults),
        "epochs": len(outcome.markers),
        "stalled": outcome.stalled,
        "delivered": len(outcome.delivered),
        **compared(made, outcome),
        "sent": outcome.sent,
        "processed": outcome.processed,
        "reused": outcome.reused,
    }


def compared(made: World, outcome: Outcome) -> dict[str, Any]:
    found = dict.fromkeys(WRONG, 0)
    by_epoch: dict[int, list[Event]] = {}
    for each in outcome.delivered:
        by_epoch.setdefault(each.epoch, []).append(each.event)
    found["inconsistent"] = inconsistent(made, outcome)
    found["out_of_order"] = out_of_order(made, outcome)
    if not made.query.policy.is_strict or made.points == "never":
        return found
    markers = list(outcome.markers)
    if markers and markers[-1].region is not None:  # the query was never ended
        markers.append(markers[-1]._replace(t=made.end + 1, epoch=len(markers) + 1, region=None))
    oracle = Oracle(made, markers)
    last = max(by_epoch, default=0)
    for epoch in range(1, len(markers)):
        expected = oracle.expected(epoch)
        told = by_epoch.get(epoch, [])
        wanted, got = Counter(map(content, expected)), Counter(map(content, told))
        found["surplus"] += sum((got - wanted).values())
        if not made.faults or epoch < last:  # an epoch begins only after the one before is complete
            found["missing"] += sum((wanted - got).values())
        elif made.query.policy.order == "spatiotemporal":
            found["missing"] += list(map(content, told)) != list(map(content, expected))[: len(told)]
    return found


def content(event: Event) -> tuple[Any, ...]:
    attributes = tuple(sorted(event.attributes.items()))
    return event.t, event.seq, event.source, event.type, event.place, attributes, event.provenance


def inconsistent(made: World, outcome: Outcome) -> int:
    places = {next(iter(each.provenance)): each.place for each in made.events}
    regions = {marker.epoch: marker.region for marker in outcome.markers}
    wrong = 0
    for each in outcome.delivered:
        region = regions[each.epoch]
        assert region is not None
        wrong += not all(lies_in(region, places[atom]) for atom in each.event.provenance)
    return wrong


def out_of_order(made: World, outcome: Outcome) -> int:
    order, wrong = made.query.policy.order, 0
    for one, other in zip(outcome.delivered, outcome.delivered[1:], strict=False):
        wrong += other.epoch < one.epoch
        if order == "spatiotemporal" and one.epoch == other.epoch:
            wrong += other.event.key <= one.event.key
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--walks", type=int, default=WALKS, help=f"(default: {WALKS})")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    options = parser.parse_args()
    rows: list[Row] = []
    repeated: list[tuple[Row, Row]] = []
    baseline: list[Row] = []
    for seed in range(options.first, options.first + options.walks):
        rough = seed % 5 == 4
        rows.append(row(world(seed, rough=rough)))
        both: list[Row] = []
        if not rough and rows[-1]["completeness"] == "weak":
            other = row(world(seed, suppression=not rows[-1]["suppression"]))
            both = sorted([rows[-1], other], key=lambda each: bool(each["suppression"]))
            repeated.append((both[0], both[1]))
        if not rough and seed % 2 == 0:
            baseline.append(row(world(seed, baseline=True)))
        for each in both or rows[-1:]:
            if any(each[key] for key in WRONG):
                print(each, file=sys.stderr, flush=True)
        if len(rows) % 100 == 0:
            print(f"{len(rows)} walks", file=sys.stderr, flush=True)
    seen = {id(each): each for each in rows} | {id(each): each for pair in repeated for each in pair}
    checked = list(seen.values())
    figures: dict[str, Any] = {"benchmark": "mcep_oracle", "walks": len(rows)}
    figures |= {key: sum(each[key] for each in checked) for key in WRONG}
    figures["rough"] = sum(each["rough"] for each in rows)
    figures["stalled"] = sum(each["stalled"] for each in rows)
    figures["epochs"] = sum(each["epochs"] for each in rows)
    figures["delivered"] = sum(each["delivered"] for each in rows)
    figures["suppressed_pairs"] = len(repeated)
    figures["sent_without_suppression"] = sum(off["sent"] for off, _ in repeated)
    figures["sent_with_suppression"] = sum(on["sent"] for _, on in repeated)
    figures["baseline_walks"] = len(baseline)
    figures["baseline_caught"] = sum(each["inconsistent"] > 0 for each in baseline)
    figures["baseline_inconsistent"] = sum(each["inconsistent"] for each in baseline)
    show("What a moving query delivers, against an offline oracle", figures, rows[:20], as_json=options.json)


if __name__ == "__main__":
    main()
