"""Radio sections of topology files and the settings of the model that they stand for."""

from typing import Any

import msgspec
import numpy as np
import pytest

from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.choice import PathLossChoice, RadioChoice
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.path_loss.free_space import FreeSpaceLoss
from orchestrator.radio.path_loss.log_distance import LogDistanceLoss
from orchestrator.radio.path_loss.range import RangeLoss
from orchestrator.radio.path_loss.two_ray import TwoRayLoss
from orchestrator.radio.path_loss.two_ray_ground import TwoRayGroundLoss
from orchestrator.radio.presets import PRESETS as MODEL_PRESETS
from orchestrator.radio.presets import radio_preset
from orchestrator.radio.settings import Mac, Radio
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.radio import RADIO_PRESETS, Radio80211b
from orchestrator.spec.topology import Topology
from orchestrator.spec.yaml_source import parse_document
from tests.unit.specs import experiment, topology


def read(**section: Any) -> Topology:
    return Topology.model_validate(topology(radio={"model": "80211b", **section}))


def model(**section: Any) -> tuple[Radio, Mac]:
    choice, mac = air_settings(read(**section))
    return choice.radio(), mac


def test_files_and_model_know_the_same_presets() -> None:
    assert sorted(RADIO_PRESETS) == sorted(MODEL_PRESETS)


@pytest.mark.parametrize("name", tuple(RADIO_PRESETS))
def test_a_preset_without_changes_is_that_preset(name: str) -> None:
    assert model(preset=name) == (radio_preset(name), Mac())


def test_a_topology_without_a_radio_has_the_papers() -> None:
    document = topology()
    del document["radio"]
    radio, mac = air_settings(Topology.model_validate(document))
    assert (radio.radio(), mac) == (radio_preset("seed-80211b"), Mac())
    assert radio.radio().tx_power_dbm == -10.0


def test_what_is_given_is_different_and_nothing_else() -> None:
    radio, mac = model(
        tx_power="100 mW",
        antenna_gain="2 dBi",
        rate="5.5 Mb/s",
        broadcast_rate="1 Mb/s",
        control_rate="2 Mb/s",
        preamble="short",
        retries=4,
        queue=50,
        rts="500 B",
        receiver={"noise_figure": "7 dB", "carrier_sense": "-90 dBm", "capture": "off"},
        contention={"cw_min": 15, "slot": "9 us"},
    )
    preset = radio_preset("seed-80211b")
    assert (radio.tx_power_dbm, radio.antenna_gain_dbi, radio.noise_figure_db) == (20.0, 2.0, 7.0)
    assert (radio.carrier_sense_dbm, radio.capture_db) == (-90.0, None)
    assert (radio.path_loss, radio.reception) == (preset.path_loss, preset.reception)
    assert (radio.bandwidth_hz, radio.preamble_sinr_db) == (preset.bandwidth_hz, preset.preamble_sinr_db)
    assert mac == Mac(5.5, 1.0, 2.0, True, 4, 500, 50, slot_us=9, cw_min=15)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"model": "two_ray", "antenna_height": "3 m"}, TwoRayLoss(3.0)),
        ({"model": "two_ray_ground", "frequency": "2.4 GHz"}, TwoRayGroundLoss(2.4e9, 1.5)),
        ({"model": "free_space", "frequency": "2.4 GHz"}, FreeSpaceLoss(2.4e9)),
        ({"model": "log_distance", "exponent": 2.7}, LogDistanceLoss(2.7, 40.0, 1.0)),
        ({"model": "range", "range": "250 m"}, RangeLoss(250.0)),
    ],
)
def test_path_losses(section: dict[str, Any], expected: PathLoss) -> None:
    assert model(pathloss=section)[0].path_loss == expected


def test_a_matrix_holds_both_ways_unless_the_way_back_is_listed() -> None:
    losses = {"a": {"b": "80 dB", "c": "90 dB"}, "c": {"a": "95 dB"}}
    document = topology(
        nodes=["a", "b", "c"],
        radio={"model": "80211b", "pathloss": {"model": "matrix", "losses": losses}},
    )
    found = Topology.model_validate(document)
    loss = air_settings(found).radio.radio().path_loss.loss_db(np.zeros((3, 3)))
    assert loss[0, 1] == loss[1, 0] == 80.0
    assert (loss[0, 2], loss[2, 0]) == (90.0, 95.0)
    assert np.isinf(loss[1, 2]) and np.isinf(loss[2, 1])
    assert Topology.model_validate(found.model_dump(mode="json")) == found


def test_nobody_answers_faster_than_they_were_asked_unless_told_to() -> None:
    assert model(rate="1 Mb/s")[1].control_rate == 1.0
    assert model(rate="1 Mb/s", control_rate="11 Mb/s")[1].control_rate == 11.0
    assert model(broadcast_rate="1 Mb/s")[1].control_rate == 11.0


def test_the_resolved_file_states_every_assumption_and_loads_to_the_same() -> None:
    original = experiment(topology=topology(radio={"model": "80211b", "rate": "2 Mb/s", "rts": "off"}))
    text = to_yaml(original.resolved())
    assert "noise_figure: 4.0" in text and "antenna_height: 2.0" in text and "slot: 2.0e-05" in text
    again = type(original).model_validate(parse_document("spec.yaml", text).value)
    assert again == original
    radio = again.topology.radio
    assert isinstance(radio, Radio80211b) and radio.contention.slot == 20e-6


def test_a_radio_can_be_told_to_another_process() -> None:
    losses = {"n01": {"n02": "80 dB"}}
    for section in ({"preset": "ns3-two-ray"}, {"pathloss": {"model": "matrix", "losses": losses}}):
        choice, _ = air_settings(read(**section))
        again = msgspec.json.decode(msgspec.json.encode(choice), type=RadioChoice)
        assert again == choice
        told, meant = again.radio(), choice.radio()
        distance = np.full((25, 25), 100.0)
        assert np.array_equal(told.path_loss.loss_db(distance), meant.path_loss.loss_db(distance))


def test_an_unknown_path_loss_or_reception_is_bad_input() -> None:
    with pytest.raises(BadInput, match='path loss: "cubic" is not known here; expected two_ray, '):
        PathLossChoice("cubic").path_loss()
    with pytest.raises(BadInput, match='no reception model "perfect"'):
        RadioChoice(reception="perfect").radio()
