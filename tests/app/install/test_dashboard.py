"""The dashboard of an installation: it asks for a login, can be reached, and can be left out."""

from __future__ import annotations

import msgspec
import yaml

from spinney.api.meta import Json
from spinney.app.install.objects import objects
from spinney.app.install.values import read_values
from spinney.web.settings import DashboardSettings, check


def installed(*layers: Json) -> dict[str, Json]:
    """The objects of an installation by kind and name."""
    documents = objects(read_values(list(layers)), "place", "1.0")
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in documents}


def test_an_installed_dashboard_asks_for_a_token() -> None:
    """It listens on all addresses, which its own check allows only with a login."""
    config = yaml.safe_load(installed()["ConfigMap/spinney-dashboard"]["data"]["config.yaml"])
    settings = msgspec.convert(config, DashboardSettings)
    check(settings)
    assert (settings.host, settings.login) == ("0.0.0.0", "token")


def test_the_service_leads_to_the_pages() -> None:
    """By the port's name, and a reader stays with one pod."""
    made = installed()
    service, pod = made["Service/spinney-dashboard"]["spec"], made["Deployment/spinney-dashboard"]["spec"]["template"]
    (port,) = service["ports"]
    ports = {each["name"]: each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]}
    assert ports[port["targetPort"]] == port["port"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["sessionAffinity"] == "ClientIP"


def test_the_dashboard_is_left_out_by_a_value() -> None:
    """With its account and its rights."""
    names = installed({"dashboard": {"enabled": False}})
    assert not [name for name in names if "spinney-dashboard" in name]
