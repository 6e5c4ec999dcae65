"""Generates the JSON Schema of our files, for editors: ``python -m orchestrator.spec.schema --write`` renews
them.

The schema covers what editors can check; ``rove validate`` checks the rest.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from orchestrator.spec.application import APPS
from orchestrator.spec.experiment import SECTIONS, Experiment
from orchestrator.spec.topology import Topology

FOLDER = Path(__file__).parent
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def experiment_schema() -> dict[str, Any]:
    schema = Experiment.model_json_schema()
    reference = schema["properties"]["topology"]
    schema["properties"]["topology"] = {
        "anyOf": [
            {"type": "string", "pattern": r"\.ya?ml$", "description": "A file, relative to this one"},
            {"$ref": reference["$ref"]},
        ],
        "examples": reference["examples"],
    }
    return {"$schema": _DIALECT, **_with_applications(schema)}


def _with_applications(schema: dict[str, Any]) -> dict[str, Any]:
    """Adds the sections of applications at the top level, in addition to ``apps``."""
    own = {
        key: value
        for section in SECTIONS.values()
        for key, value in schema["$defs"][section.__name__]["properties"].items()
    }
    properties = {**schema["properties"], **own}
    ordered = {key: properties[key] for key in Experiment.known_keys()}
    required = [key for key in schema["required"] if key != APPS]
    either = [{"required": [key]} for key in (*SECTIONS, APPS)]
    return {**schema, "properties": ordered, "required": required, "anyOf": either}


def topology_schema() -> dict[str, Any]:
    return {"$schema": _DIALECT, **Topology.model_json_schema()}


def schema_files() -> dict[Path, str]:
    """Returns the text that each schema file should have."""
    schemas = {"experiment": experiment_schema(), "topology": topology_schema()}
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.spec.schema", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing them")
    write = parser.parse_args().write
    stale = [path for path, text in schema_files().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if write:
            path.write_text(schema_files()[path])
        print(f"{path.name}: {'written' if write else 'out of date; run with --write'}")
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main())
