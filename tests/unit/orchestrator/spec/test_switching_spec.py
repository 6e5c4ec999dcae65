"""The ``switching`` section of experiments: thresholds of both kinds, and every policy of the agents."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from node_agent.apps.dataflow.model.decision import Rule, Threshold
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.dataflow.switching.policy import POLICIES
from orchestrator.apps.dataflow.spec.switching import Switching
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import experiment, section


def test_experiments_offer_exactly_the_policies_that_agents_have() -> None:
    for policy in POLICIES:
        assert section(experiment(switching={"policy": policy})).switching.policy == policy
    offered = Switching.model_json_schema()["properties"]["policy"]["anyOf"][0]["enum"]
    assert offered == list(POLICIES)


def test_modes_are_those_of_the_agents() -> None:
    assert get_args(Switching.model_fields["mode"].annotation) == tuple(Mode)
    assert section(experiment()).switching.mode == "link_state"
    exchange = experiment(switching={"mode": "exchange"})
    assert "each other (exchange)" in section(exchange).switching.summary()
    with pytest.raises(ValidationError, match="Input should be 'link_state' or 'exchange'"):
        experiment(switching={"mode": "gossip"})


@pytest.mark.parametrize(
    ("written", "threshold"),
    [
        (0, Threshold()),
        (1.5, Threshold(1.5)),
        ("10%", Threshold(0.1, relative=True)),
        (" 2.5 % ", Threshold(0.025, relative=True)),
    ],
)
def test_thresholds(written: Any, threshold: Threshold) -> None:
    made = experiment(switching={"threshold": written, "policy": "weighted", "exponent": 3}, seed=7)
    assert section(made).rule(made.seed) == Rule("weighted", threshold, 3.0, 7)
    again = Experiment.model_validate(made.resolved())
    assert section(again).rule(again.seed) == section(made).rule(made.seed)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("much", '"much" is not a threshold'),
        ("1", '"1" is not a threshold'),
        (-1, "-1: a threshold is between 0 and 1,000,000"),
        (float("nan"), "a threshold is between"),
        (True, "true is not a threshold"),
        ("101%", '"101%" is too large'),
        ("-5%", '"-5%" is not a threshold'),
    ],
)
def test_bad_thresholds(written: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        experiment(switching={"threshold": written})
    assert said in str(caught.value)
