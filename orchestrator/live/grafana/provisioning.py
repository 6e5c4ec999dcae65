"""What sets Grafana and Prometheus up: data source, dashboards, alerts, and a compose file for containers."""

from typing import Any

from orchestrator.live.prometheus import rules
from orchestrator.live.prometheus.service import RETENTION, configuration

PROMETHEUS_IMAGE = "prom/prometheus:v2.53.3"
GRAFANA_IMAGE = "grafana/grafana:11.6.0"
DATASOURCE_UID = "rove-prometheus"
FOLDER = "Rove"
SERVER = "127.0.0.1:8470"
"""Where `rove serve` listens by default."""
PROMETHEUS = "127.0.0.1:9090"
_DASHBOARDS = "/var/lib/grafana/dashboards/rove"


def datasources() -> str:
    source = {
        "name": "Rove",
        "uid": DATASOURCE_UID,
        "type": "prometheus",
        "access": "proxy",
        "url": f"http://{PROMETHEUS}",
        "isDefault": True,
        "jsonData": {"timeInterval": f"{rules.SCRAPE_S}s", "httpMethod": "POST"},
    }
    return rules.yaml_text({"apiVersion": 1, "datasources": [source]})


def dashboards() -> str:
    provider = {
        "name": "rove",
        "folder": FOLDER,
        "type": "file",
        "allowUiUpdates": False,
        "options": {"path": _DASHBOARDS},
    }
    return rules.yaml_text({"apiVersion": 1, "providers": [provider]})


def alerts() -> str:
    """Returns the alerts of Prometheus' rules as Grafana's own, for those who let Grafana notify them."""
    group = {
        "orgId": 1,
        "name": "rove",
        "folder": FOLDER,
        "interval": "10s",
        "rules": [_alert(alert) for alert in rules.ALERTS],
    }
    return rules.yaml_text({"apiVersion": 1, "groups": [group]})


def _alert(alert: rules.Alert) -> dict[str, Any]:
    asked = {
        "refId": "A",
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": DATASOURCE_UID,
        "model": {"refId": "A", "expr": alert.expression, "instant": True, "range": False},
    }
    # An expression that holds gives a series; its value may be 0 or less.
    found = {
        "refId": "B",
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": "__expr__",
        "model": {"refId": "B", "type": "math", "expression": "is_number($A)"},
    }
    return {
        "uid": alert.name.lower(),
        "title": alert.name,
        "condition": "B",
        "data": [asked, found],
        "for": alert.lasts,
        "noDataState": "OK",
        "execErrState": "Error",
        "labels": {"severity": "warning"},
        "annotations": {"summary": alert.summary},
    }


def prometheus() -> str:
    return configuration(SERVER, "rules.yml")


def compose() -> str:
    """Both use the host's network: `rove serve` is on loopback, and so are they."""
    services = {
        "prometheus": {
            "image": PROMETHEUS_IMAGE,
            "network_mode": "host",
            "command": [
                "--config.file=/etc/prometheus/prometheus.yml",
                "--storage.tsdb.path=/prometheus",
                f"--storage.tsdb.retention.time={RETENTION}",
                f"--web.listen-address={PROMETHEUS}",
                "--enable-feature=exemplar-storage",
            ],
            "volumes": ["./prometheus:/etc/prometheus:ro", "prometheus:/prometheus"],
        },
        "grafana": {
            "image": GRAFANA_IMAGE,
            "network_mode": "host",
            "environment": {"GF_SERVER_HTTP_ADDR": "127.0.0.1", "GF_SERVER_HTTP_PORT": "3000"},
            "volumes": [
                "./grafana/provisioning:/etc/grafana/provisioning:ro",
                f"./grafana/dashboards:{_DASHBOARDS}:ro",
                "grafana:/var/lib/grafana",
            ],
            "depends_on": ["prometheus"],
        },
    }
    return rules.yaml_text({"services": services, "volumes": {"prometheus": {}, "grafana": {}}})
