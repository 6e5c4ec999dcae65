"""Defines the section ``radio`` of a topology: the models that it may name, and their parameters.

An ``80211b`` section starts from a preset and says what is different. Here every value is filled in, so that
the resolved file states everything that was assumed.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from node_agent.extensions import ExtensionError, Registry
from orchestrator.model.rates import RATES
from orchestrator.spec.base import Section
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.pathloss import PathLossField
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, listed, shown, unusable
from orchestrator.spec.registered import RegisteredName
from orchestrator.spec.units import (
    BIT_RATE,
    DURATION,
    LEVEL,
    POWER,
    SIZE,
    BitRate,
    Duration,
    Frequency,
    Gain,
    OrWord,
    PositiveLength,
    Power,
)

MODEL_80211B = "80211b"
RATES_HINT = "choose 1, 2, 5.5 or 11 Mb/s"
_MBPS = 1e6
_US = 1e-6


def _checked_preset(name: str, value: object) -> Callable[[], dict[str, Any]]:
    if not callable(value):
        raise ExtensionError(f"{name} is not a radio preset: a function that returns a whole 80211b section")
    return value


RADIO_PRESETS: Registry[Callable[[], dict[str, Any]]] = Registry(
    "radio preset",
    "rove.radio_presets",
    _checked_preset,
    {
        "seed-80211b": "orchestrator.radio.presets:seed_80211b_section",
        "ns3-range": "orchestrator.radio.presets:ns3_range_section",
        "ns3-two-ray": "orchestrator.radio.presets:ns3_two_ray_section",
    },
)
DEFAULT_PRESET = "seed-80211b"


class DiscRadio(Section):
    """A disc: every node within ``range`` receives, no other node does."""

    model: Literal["disc"]
    range: PositiveLength = Field(examples=["300 m"])
    bandwidth: BitRate = Field(examples=["11 Mb/s"])
    latency: Duration = Field(examples=["1 ms"])

    @property
    def follows_distance(self) -> bool:
        """Whether it matters where nodes are."""
        return True

    def summary(self) -> list[str]:
        """Describes the radio in a few lines."""
        rate, latency = self.bandwidth / _MBPS, self.latency * 1e3
        return [f"disc, range {self.range:g} m, {rate:g} Mb/s, latency {latency:g} ms"]


def _read_rate(value: Any) -> float:
    rate = BIT_RATE.read(value)
    if rate / _MBPS in RATES:
        return rate
    hint = f'write the unit: "{value} Mb/s"' if value in RATES else RATES_HINT
    raise unusable(f"{shown(value)} is not a rate of 802.11b", hint)


Rate80211b = Annotated[
    float,
    BeforeValidator(_read_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [rate * _MBPS for rate in RATES]},
                {"type": "string", "pattern": r"^\s*(?:1|2|5\.5|11)(?:\.0)?\s*M(?:b/s|bit/s|bps)\s*$"},
            ],
            "description": "One of 1, 2, 5.5 and 11 Mb/s; a bare number is in bit/s",
            "examples": ["11 Mb/s"],
        }
    ),
]


def _all_from_preset(schema: dict[str, Any]) -> None:
    schema["required"] = [key for key in schema["required"] if key == "model"]
    if not schema["required"]:
        del schema["required"]


class Receiver(Section):
    """Thresholds for receiving a frame and for sensing a busy channel."""

    model_config = ConfigDict(json_schema_extra=_all_from_preset)

    reception: Literal["emane", "dsss"] = Field(
        description="Success by SINR: EMANE's tables, or the textbook's error rates (as ns-3)"
    )
    noise_figure: Annotated[float, LEVEL.within(ge=0, le=60)]
    noise_bandwidth: Frequency = Field(description="The noise floor is -174 dBm/Hz over it, plus the figure")
    sensitivity: Annotated[float | Literal["noise_floor"], OrWord(POWER, "noise_floor")] = Field(
        description="Weaker frames are never decoded"
    )
    carrier_sense: Annotated[float | Literal["sensitivity"], OrWord(POWER, "sensitivity")] = Field(
        description="From here on others keep silent"
    )
    preamble_sinr: Annotated[float, LEVEL.within(ge=-60, le=60)] = Field(
        description="What it takes to lock on to a frame"
    )
    capture: Annotated[float | Literal["off"], OrWord(LEVEL.within(ge=0, le=100), "off")] = Field(
        description="By how much a later frame must be stronger to take over"
    )


_FEW_US = DURATION.within(ge=_US, le=1000 * _US)
_Window = Annotated[int, Field(strict=True, ge=1, le=32767)]


class Contention(Section):
    """The timing parameters of DCF."""

    model_config = ConfigDict(json_schema_extra=_all_from_preset)

    slot: Annotated[float, _FEW_US]
    sifs: Annotated[float, _FEW_US]
    cw_min: _Window = Field(description="The backoff after a success is drawn from 0 to this many slots")
    cw_max: _Window = Field(description="… and it doubles with each failure up to this")

    @model_validator(mode="after")
    def _makes_sense(self) -> "Contention":
        findings = [
            Finding((key,), f"{getattr(self, key) / _US:g} µs is not a whole number of microseconds")
            for key in ("slot", "sifs")
            if abs(getattr(self, key) / _US - round(getattr(self, key) / _US)) > 1e-6
        ]
        if self.cw_max < self.cw_min:
            findings.append(Finding(("cw_max",), f"{self.cw_max} is less than cw_min ({self.cw_min})"))
        if findings:
            raise Unusable(*findings)
        return self


class Radio80211b(Section):
    """802.11b: path loss, noise, interference, and the DCF with its collisions and retries."""

    model_config = ConfigDict(json_schema_extra=_all_from_preset)
    other_names: ClassVar[dict[str, str]] = {"ack_rate": "control_rate"}

    model: Literal["80211b"]
    preset: Annotated[str, RegisteredName(RADIO_PRESETS, files=False)] = Field(
        description="Gives what is not given here: EMANE at the paper's setting, or one of ns-3's regimes"
    )
    tx_power: Power
    antenna_gain: Gain = Field(description="Of sender and receiver each")
    pathloss: PathLossField
    rate: Rate80211b = Field(description="Of unicast frames")
    broadcast_rate: Rate80211b
    control_rate: Rate80211b = Field(description="Of ACK, RTS and CTS")
    preamble: Literal["long", "short"]
    retries: Annotated[int, Field(strict=True, ge=1, le=255)] = Field(
        description="Transmissions of a unicast frame in all, until it is acknowledged or given up"
    )
    queue: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = Field(description="Frames that may wait")
    rts: Annotated[int | Literal["off"], OrWord(SIZE.within(le=65535), "off")] = Field(
        description="Frames of at least this size are announced by RTS and CTS"
    )
    receiver: Receiver
    contention: Contention

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        name = value.get("preset", DEFAULT_PRESET)
        if name not in RADIO_PRESETS:
            text = f"there is no preset {shown(name)}; expected {listed(RADIO_PRESETS)}"
            raise unusable(text, did_you_mean(name, RADIO_PRESETS), at=("preset",))
        preset = RADIO_PRESETS[name]()
        filled = {**preset, **value}
        for key in ("receiver", "contention"):
            if isinstance(value.get(key), dict):
                filled[key] = {**preset[key], **value[key]}
        if "control_rate" not in value:
            # An answer must not be sent faster than its frame: the ACK would not reach as far as the frame.
            with suppress(Unusable):  # the rate's own validation reports that
                filled["control_rate"] = min(filled["control_rate"], _read_rate(filled["rate"]))
        return filled

    @property
    def follows_distance(self) -> bool:
        return self.pathloss.follows_distance

    def summary(self) -> list[str]:
        rates = [f"{rate / _MBPS:g}" for rate in (self.rate, self.broadcast_rate, self.control_rate)]
        return [
            f"802.11b ({self.preset}), {self.tx_power:g} dBm, path loss: {self.pathloss.summary()}",
            f"{rates[0]} Mb/s (broadcast {rates[1]}, control {rates[2]}), {self.preamble} preamble, "
            f"{self.retries} transmissions, queue of {self.queue}, RTS "
            + (f"from {self.rts} B" if self.rts != "off" else "off"),
        ]


RadioSection = DiscRadio | Radio80211b | ContactRadio
RadioField = Annotated[RadioSection, Field(discriminator="model")]


def default_radio() -> Radio80211b:
    return Radio80211b.model_validate({"model": MODEL_80211B})
