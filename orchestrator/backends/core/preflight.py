"""Tests CORE's radio before the run: one pair of nodes, within range and beyond.

CORE may start a session in which every node hears every other, and report success.
"""

from collections.abc import Sequence
from math import isfinite, sqrt

from msgspec import Struct

from orchestrator.backends.core.air import Air
from orchestrator.backends.core.session import Session, pixels
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.path_loss.base import loss_at
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.topology import Topology

RX_TOLERANCE_DB = 0.2
"""Less than 1 % of distance under two-ray ground; CORE's positions have single precision."""
_ABOVE_DB = 10.0
_BELOW_DB = 3.0
_SHARE = 0.05
_FARTHEST_M = 1e7

Spot = tuple[float, float]


class Trial(Struct, frozen=True):
    """Places the pair ``at``, so many metres apart: is it heard, and with what power?"""

    distance_m: float
    at: tuple[Spot, Spot]
    heard: bool
    rx_dbm: float | None = None


class Preflight(Struct, frozen=True):
    """``patience_s``: CORE's rules and EMANE's location events take effect with a delay."""

    pair: tuple[str, str]
    trials: tuple[Trial, ...]
    patience_s: float = 10.0


class Observed(Struct, frozen=True):
    """``rx_dbm``: None if it could not be measured; ``note`` says why."""

    heard: bool
    rx_dbm: float | None = None
    note: str = ""


def preflight_of(topology: Topology, session: Session) -> Preflight | None:
    """Returns None if there is only one node."""
    if len(session.nodes) < 2:
        return None
    first, second = (node.name for node in session.nodes[:2])
    radio = topology.radio
    distances: list[tuple[float, bool, float | None]]
    if isinstance(radio, DiscRadio):
        margin = max(1.0, _SHARE * radio.range)
        distances = [(radio.range - margin, True, None), (radio.range + margin, False, None)]
    else:
        physics = air_settings(topology).radio.radio()
        sent = physics.tx_power_dbm + 2 * physics.antenna_gain_dbi
        floor = physics.decode_threshold_dbm
        near = farthest_within(physics.path_loss, sent - floor - _ABOVE_DB)
        far = farthest_within(physics.path_loss, sent - floor + _BELOW_DB)
        distances = [(near, True, sent - loss_at(physics.path_loss, near)), (far, False, None)]
    trials = tuple(
        Trial(distance, _diagonal(distance, session.air), heard, rx)
        for distance, heard, rx in distances
        if distance > 0
    )
    return Preflight((first, second), trials)


def farthest_within(path_loss: PathLoss, loss_db: float) -> float:
    """Returns the largest distance with a loss of at most ``loss_db``; 0 if there is none."""
    low, high = 0.0, _FARTHEST_M
    while high - low > 1e-3:
        middle = (low + high) / 2
        loss = loss_at(path_loss, middle)
        low, high = (middle, high) if isfinite(loss) and loss <= loss_db else (low, middle)
    return low


def _diagonal(distance: float, air: Air) -> tuple[Spot, Spot]:
    """Places the pair on a diagonal, so that both axes are tested."""
    side = distance / sqrt(2)
    return (0.0, 0.0), pixels(air).of((side, side))


def problems(preflight: Preflight, observed: Sequence[Observed], air: Air) -> list[str]:
    """Returns what is wrong; nothing if the run's radio can be trusted."""
    found = []
    for trial, seen in zip(preflight.trials, observed, strict=True):
        apart = f"{' and '.join(preflight.pair)}, {trial.distance_m:.0f} m apart,"
        if seen.heard and not trial.heard:
            found.append(f"{apart} hear each other, and are out of range: {_UNBOUNDED[bool(air.emane)]}")
        elif trial.heard and not seen.heard:
            found.append(f"{apart} do not hear each other, and are in range: {_DEAF[bool(air.emane)]}")
        elif trial.rx_dbm is not None and seen.rx_dbm is not None:
            off = seen.rx_dbm - trial.rx_dbm
            if abs(off) > RX_TOLERANCE_DB:
                found.append(
                    f"{apart} receive {seen.rx_dbm:.2f} dBm instead of {trial.rx_dbm:.2f} dBm: "
                    "distances or antenna heights in EMANE are not the topology's"
                )
    return found


_UNBOUNDED = {
    False: "CORE does not enforce the range. Its daemon's log probably shows that nft refused a rule "
    "('ibriport', 'Operation not supported'): its host needs nftables' support of bridges, and the daemon a "
    "restart (docs/core.md)",
    True: "EMANE's path loss is not the topology's (docs/core.md)",
}
_DEAF = {
    False: "CORE's WLAN carries nothing; see its daemon's log (docs/core.md)",
    True: "EMANE carries nothing; see eth0-emane.log in the nodes' directories below /tmp/pycore.* "
    "(docs/core.md)",
}
