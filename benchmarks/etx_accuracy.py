"""Measures the ETX of our daemons on links that lose a known share p of the frames each way: 1 / (1 - p)².

Pairs of nodes in virtual time, out of the others' range; each frame is lost with probability p, whatever its
size. From 40 s on (etx_ff's window is 32 s long) the cost is sampled again and again. ``measured`` is what it
settles at: the inverse of the mean delivery ratio LQ · NLQ; ``relative_error`` is that of the worst link of
the seeds. ``mean_etx``, the mean of the samples themselves, is larger: a window holds few packets (16 with
olsrd's HELLOs), and the inverse of a scattering ratio is too large on average. ``single_look_sd`` is the
deviation of the samples, ``expected_sd`` the deviation that follows from the number of frames. etx_float
finds too little loss if much is lost: like olsrd's it counts one lost HELLO per announced interval, but
jitter makes the real ones shorter.
"""

import argparse
from math import sqrt
from statistics import harmonic_mean, mean, pstdev
from typing import NamedTuple

from benchmarks.olsr.lossy_air import LossyAir
from benchmarks.olsr.virtual import VirtualNetwork
from benchmarks.radio.report import Row, show
from node_agent.olsr.config import OlsrConfig, Quality

LOSSES = (0.1, 0.2, 0.3, 0.4, 0.5)
QUALITIES: tuple[Quality, ...] = ("etx_ff", "etx_float")
HELLOS = (0.5, 1.0, 2.0)
SETTLED_S = 40.0
LOOK_EVERY_S = 4.0
TOLERANCE = 0.15
ETX_FF_WINDOW_S = 32.0
ETX_FLOAT_AGING = 0.05


class Looks(NamedTuple):
    """Sampled costs of one direction of a link; None: broken at that time."""

    loss: float
    costs: list[float | None]


def observe(quality: Quality, hello: float, seconds: float, seed: int) -> list[Looks]:
    ends = {(f"a{i}", f"b{i}"): loss for i, loss in enumerate(LOSSES)}
    losses: dict[str, dict[str, float]] = {}
    for (a, b), loss in ends.items():
        losses[a], losses[b] = {b: loss}, {a: loss}
    config = OlsrConfig(quality=quality, hello_interval=hello, hello_validity=hello * 10)
    network = VirtualNetwork(list(losses), lambda loop: LossyAir(loop, losses, seed), config, seed)
    looks = {node: Looks(loss, []) for pair, loss in ends.items() for node in pair}
    for look in range(round(seconds / LOOK_EVERY_S)):
        network.run_until(SETTLED_S + look * LOOK_EVERY_S)
        for node, service in network.services.items():
            links = service.daemon.view(network.loop.now_ns()).links
            looks[node].costs.append(links[0].cost if links else None)
    network.close()
    return list(looks.values())


def rows_of(quality: Quality, hello: float, seconds: float, seeds: int) -> list[Row]:
    looks = [look for seed in range(1, seeds + 1) for look in observe(quality, hello, seconds, seed)]
    rows: list[Row] = []
    for loss in LOSSES:
        truth = 1 / (1 - loss) ** 2
        links = [[cost for cost in look.costs if cost is not None] for look in looks if look.loss == loss]
        measured = [harmonic_mean(costs) for costs in links]
        error = max(abs(found / truth - 1) for found in measured)
        tosses = ETX_FF_WINDOW_S / hello if quality == "etx_ff" else 2 / ETX_FLOAT_AGING - 1
        rows.append(
            {
                "quality": quality,
                "hello_s": hello,
                "loss": loss,
                "etx": truth,
                "measured": mean(measured),
                "relative_error": error,
                "tolerance": TOLERANCE,
                "within": error <= TOLERANCE,
                "mean_etx": mean(mean(costs) for costs in links),
                "single_look_sd": mean(pstdev(costs) / truth for costs in links),
                "expected_sd": sqrt(2 * loss / (1 - loss) / tosses),
                "broken_share": 1 - sum(map(len, links)) / (len(links) * round(seconds / LOOK_EVERY_S)),
            }
        )
    return rows


def _worst(rows: list[Row], quality: Quality) -> float:
    error: float = max(row["relative_error"] for row in rows if row["quality"] == quality)
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=1800.0, help="observed time (default: 1800)")
    parser.add_argument("--seeds", type=int, default=3, help="runs (default: 3)")
    options = parser.parse_args()
    rows = [
        row
        for quality in QUALITIES
        for hello in HELLOS
        for row in rows_of(quality, hello, options.seconds, options.seeds)
    ]
    figures = {
        "benchmark": "etx_accuracy",
        "max_relative_error": _worst(rows, "etx_ff"),
        "max_relative_error_etx_float": _worst(rows, "etx_float"),
        "outside": sum(not row["within"] for row in rows),
    }
    show("ETX on links with known loss", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
