"""Writes resolved documents as YAML that Rove's reader turns back into the same value."""

from typing import Any

import yaml

from orchestrator.spec import yaml_source


class _Dumper(yaml.SafeDumper):
    """Quotes every text that YAML 1.1 (other tools) or our reader would take for another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern in (
    ("float", yaml_source.FLOAT),
    ("int", yaml_source.INTEGER),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list("-+.0123456789"))


def to_yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
