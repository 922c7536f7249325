"""How each scheduler is started: command lines, configuration, and where its chart keeps that in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import yaml

from spinney.api.apps import Deployment
from spinney.api.core import ConfigMap
from spinney.api.meta import Json, Resource
from spinney.testing.process import free_ports


class Setup(Enum):
    """How a scheduler is configured."""

    AS_SHIPPED = "as its project ships it"
    WITH_TOPOLOGY = "as shipped, with topology switched on"


@dataclass(frozen=True)
class Launch:
    """One program to start. A confined one runs in a network of its own, as it listens on all addresses."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    confined: bool = False


@dataclass(frozen=True)
class Arrangement:
    """A scheduler's programs in order of their start, and its configuration as objects of the cluster."""

    launches: tuple[Launch, ...]
    objects: tuple[tuple[Resource, Json], ...] = ()


@dataclass(frozen=True)
class Site:
    """What a scheduler is given: its shipped configuration, a folder to write to, and its way to the API server."""

    shipped: Path
    folder: Path
    kubeconfig: Path
    setup: Setup


NAMESPACES = {
    "volcano": "volcano-system",
    "koordinator": "koordinator-system",
    "yunikorn": "yunikorn",
    "kai": "kai-scheduler",
}


def arrange(name: str, site: Site) -> Arrangement:
    """What to start for a scheduler, and what to write beforehand."""
    return _ARRANGED[name](site)


def _volcano(site: Site) -> Arrangement:
    """The chart's configuration has no topology plugin; with it alone `networkTopology` means something."""
    configuration = yaml.safe_load((site.shipped / "volcano-scheduler.conf").read_text())
    if site.setup is Setup.WITH_TOPOLOGY:
        configuration["tiers"][-1]["plugins"].append({"name": "network-topology-aware"})
    text = yaml.safe_dump(configuration)
    path = site.folder / "volcano-scheduler.conf"
    path.write_text(text)
    scheduling, health, controlling = free_ports(3)
    shared = (f"--kubeconfig={site.kubeconfig}", "--leader-elect=false", "--enable-healthz=true")
    scheduler = (
        *shared,
        f"--healthz-address=127.0.0.1:{health}",
        f"--listen-address=127.0.0.1:{scheduling}",
        f"--scheduler-conf={path}",
        f"--cache-dump-dir={site.folder}",
    )
    return Arrangement(
        (
            Launch("vc-controller-manager", (*shared, f"--healthz-address=127.0.0.1:{controlling}")),
            Launch("vc-scheduler", scheduler),
        ),
        (_config_map("volcano", "volcano-scheduler-configmap", "volcano-scheduler.conf", text),),
    )


def _koordinator(site: Site) -> Arrangement:
    """The shipped configuration, without leader election: a lease of a stopped one would delay the next."""
    document = yaml.safe_load((site.shipped / "scheduler-config.yaml").read_text())
    configuration = yaml.safe_load(document["data"]["koord-scheduler-config"])
    flags: tuple[str, ...] = ()
    if site.setup is Setup.WITH_TOPOLOGY:
        aware = {"apiVersion": configuration["apiVersion"], "kind": "CoschedulingArgs", "awareNetworkTopology": True}
        configuration["profiles"][0]["pluginConfig"].append({"name": "Coscheduling", "args": aware})
        flags = ("--enable-network-topology-manager",)
    configuration["leaderElection"] = {"leaderElect": False}
    configuration["clientConnection"] = {"kubeconfig": str(site.kubeconfig)}
    text = yaml.safe_dump(configuration)
    path = site.folder / "koord-scheduler.yaml"
    path.write_text(text)
    plain, secure = free_ports(2)
    arguments = (
        f"--config={path}",
        "--address=127.0.0.1",
        f"--port={plain}",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--authentication-kubeconfig={site.kubeconfig}",
        f"--authorization-kubeconfig={site.kubeconfig}",
        *flags,
    )
    return Arrangement(
        (Launch("koord-scheduler", arguments),),
        (
            _config_map("koordinator", "koord-scheduler-config", "koord-scheduler-config", text),
            _deployment("koordinator", "koord-scheduler", flags),
        ),
    )


def _yunikorn(site: Site) -> Arrangement:
    """No flags: it reads ConfigMaps, and serves HTTP on all addresses at a fixed port."""
    environment = {"KUBECONFIG": str(site.kubeconfig), "NAMESPACE": NAMESPACES["yunikorn"]}
    return Arrangement(
        (Launch("yunikorn", environment=environment, confined=True),),
        (_config_map("yunikorn", "yunikorn-configs", "queues.yaml", _YUNIKORN_QUEUES),),
    )


def _kai(site: Site) -> Arrangement:
    """The configuration that is built in. Its webhooks would need certificates; what they check is checked by ours."""
    environment = {"KUBECONFIG": str(site.kubeconfig)}
    flags = {
        "scheduler": (),
        "binder": (),
        "podgroupcontroller": ("--enable-podgroup-webhook=false",),
        "queuecontroller": ("--enable-webhook=false",),
    }
    return Arrangement(tuple(Launch(name, words, environment, confined=True) for name, words in flags.items()))


# The rules that YuniKorn ships make a queue of each namespace, and pay no heed to the queue that an application names.
_YUNIKORN_QUEUES = yaml.safe_dump(
    {
        "partitions": [
            {"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}]}
        ]
    }
)
_ARRANGED: Mapping[str, Callable[[Site], Arrangement]] = {
    "volcano": _volcano,
    "koordinator": _koordinator,
    "yunikorn": _yunikorn,
    "kai": _kai,
}


def _config_map(scheduler: str, name: str, key: str, text: str) -> tuple[Resource, Json]:
    return ConfigMap.resource, {
        "metadata": {"name": name, "namespace": NAMESPACES[scheduler]},
        "data": {key: text},
    }


def _deployment(scheduler: str, name: str, arguments: tuple[str, ...]) -> tuple[Resource, Json]:
    """The scheduler's Deployment as far as others read it; the program itself runs beside the cluster."""
    container = {"name": "scheduler", "image": name, "args": list(arguments)}
    return Deployment.resource, {
        "metadata": {"name": name, "namespace": NAMESPACES[scheduler]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }
