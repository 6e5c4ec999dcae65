"""The configuration of an OLSR daemon. The defaults are olsrd's."""

from ipaddress import IPv4Network
from typing import Literal

from msgspec import Struct

Quality = Literal["etx_ff", "etx_float", "fast", "hops"]

MINIMAL_INTERVAL = 0.05
MAXIMAL_VALIDITY = 3968.0  # the longest time that 8 bits on the wire can express
LONGEST_VALIDITY = 600.0  # twice olsrd's default


class OlsrConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All times are in seconds. The quality ``hops`` counts hops and uses
    RFC 3626's messages (LinkQualityLevel 0).

    ``hna``: networks behind this node. ``accept_networks``: announced networks that get routes here;
    0.0.0.0/0 stands for the default route alone. ``longest_validity``: the limit of what other nodes'
    validity times can say.
    """

    hello_interval: float = 2.0
    hello_validity: float = 20.0
    tc_interval: float = 5.0
    tc_validity: float = 300.0
    mid_interval: float = 5.0
    mid_validity: float = 300.0
    hna_interval: float = 5.0
    hna_validity: float = 300.0
    willingness: int = 3
    quality: Quality = "etx_ff"
    fisheye: bool = True
    tc_redundancy: int = 2
    mpr_coverage: int = 7
    jitter: float = 0.25
    hna: tuple[str, ...] = ()
    accept_networks: tuple[str, ...] = ()
    longest_validity: float = LONGEST_VALIDITY

    def __post_init__(self) -> None:
        for name in ("hello", "tc", "mid", "hna"):
            interval: float = getattr(self, f"{name}_interval")
            validity: float = getattr(self, f"{name}_validity")
            if not MINIMAL_INTERVAL <= interval < validity <= MAXIMAL_VALIDITY:
                raise ValueError(
                    f"{name}_interval must be at least {MINIMAL_INTERVAL} s and shorter than {name}_validity,"
                    f" which is at most {MAXIMAL_VALIDITY:.0f} s: {interval} s and {validity} s given"
                )
            if validity > self.longest_validity:
                raise ValueError(
                    f"{name}_validity is {validity} s, above the limit of"
                    f" {self.longest_validity} s: raise longest_validity"
                )
        if not 0 <= self.willingness <= 7:
            raise ValueError(f"willingness is 0 (never relay) to 7 (always): {self.willingness} given")
        if not 0 <= self.tc_redundancy <= 2:
            raise ValueError(f"tc_redundancy is 0, 1 or 2: {self.tc_redundancy} given")
        if self.mpr_coverage < 1:
            raise ValueError(f"mpr_coverage must be at least 1: {self.mpr_coverage} given")
        if not 0 <= self.jitter <= 0.5:
            raise ValueError(f"jitter is a share of the interval, 0 to 0.5: {self.jitter} given")
        for network in (*self.hna, *self.accept_networks):
            IPv4Network(network)
