"""The daemon's command line: what it makes of its options, and one clear line for what cannot be."""

import json
from pathlib import Path

import pytest

from node_agent.olsr.__main__ import configured, main, parser
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.process import ProcessConfig


def test_the_defaults_are_olsrds() -> None:
    assert configured(parser().parse_args(["-i", "wlan0"])) == ProcessConfig(interfaces=("wlan0",))


def test_options_reach_the_daemon() -> None:
    words = "-i wlan0 -i eth1 --hello 1 --hello-validity 10 --tc 0.5 --tc-validity 15 --hna 10.9.0.0/16"
    config = configured(
        parser().parse_args(
            [*words.split(), "--jsoninfo-port", "0", "--no-routes", "--no-fisheye", "--quality", "hops"]
        )
    )
    assert config.interfaces == ("wlan0", "eth1")
    assert config.olsr == OlsrConfig(
        hello_interval=1,
        hello_validity=10,
        tc_interval=0.5,
        tc_validity=15,
        quality="hops",
        hna=("10.9.0.0/16",),
        fisheye=False,
    )
    assert (config.jsoninfo_port, config.routes) == (0, False)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("-i nowhere0", 1, "olsr: there is no interface nowhere0"),
        ("-i lo", 1, "olsr: lo is the loopback interface"),
        ("-i a-name-that-is-too-long", 1, "olsr: 'a-name-that-is-too-long' cannot be"),
        ("-i lo -i lo", 2, "olsr: an interface is named twice"),
        ("-i lo --hello 5 --hello-validity 4", 2, "olsr: hello_interval must be"),
        ("-i lo --hna 10.0.0.1/8", 2, "olsr: --hna 10.0.0.1/8: 10.0.0.1/8 has host bits set"),
        ("-i lo --jsoninfo-port 99999", 2, "olsr: 99999 is not a port number"),
        ("-i lo --quality fast --sensitivity 20", 2, "olsr: a sensitivity is between -130 and 0 dBm"),
        ("--config /nowhere.json", 2, "olsr: /nowhere.json: "),
    ],
)
def test_what_cannot_be_is_one_line(
    words: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == status
    out, err = capsys.readouterr()
    assert err.startswith(said)
    assert (out, err.count("\n")) == ("", 1)


def test_a_configuration_file_with_an_unknown_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "olsr.json"
    file.write_text(json.dumps({"interfaces": ["lo"], "olsr": {"hello": 3}}))
    assert main(["--config", str(file)]) == 2
    assert "unknown field `hello`" in capsys.readouterr().err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert "sudo python3 -m node_agent.olsr --interface wlan0" in text
    assert "seconds between two HELLOs (2)" in text
