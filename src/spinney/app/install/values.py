"""The choices of an installation; their descriptions become the chart's schema and README."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from spinney.api.image import REPOSITORY
from spinney.api.meta import Json
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.app.errors import wrong_value
from spinney.app.install.passed_on import problems


def _says(text: str) -> Meta:
    return Meta(description=text)


class Block(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A group of choices: nothing unknown is accepted, and every choice has a default."""


class Image(Block, frozen=True):
    """The image of all containers."""

    repository: Annotated[str, _says("Where the image comes from.")] = REPOSITORY
    tag: Annotated[str, _says("Its tag; empty stands for the version of this chart.")] = ""
    pull_policy: Annotated[Literal["Always", "IfNotPresent", "Never"], _says("When kubelets pull the image.")] = (
        "IfNotPresent"
    )
    pull_secrets: Annotated[tuple[str, ...], _says("Names of Secrets to pull the image with.")] = ()


def _small() -> Json:
    return {"requests": {"cpu": "50m", "memory": "192Mi"}}


class Grove(Block, frozen=True):
    """The operator of PodCliqueSets."""

    enabled: Annotated[bool, _says("Run the operator.")] = True
    resources: Annotated[Json, _says("Requests and limits of its container.")] = field(default_factory=_small)
    config: Annotated[Json, _says("Its configuration: fields of upstream's OperatorConfiguration.")] = {}


class BackendsDeployment(Block, frozen=True):
    """One Deployment of backends."""

    name: Annotated[str, _says("Appended to `spinney-backends-`; empty for the only one.")] = ""
    only: Annotated[tuple[str, ...], _says("The backends that it runs, such as `kai`; all of them where empty.")] = ()


class Backends(Block, frozen=True):
    """The controllers that turn gangs into the objects of schedulers."""

    enabled: Annotated[bool, _says("Run backends.")] = True
    deployments: Annotated[
        tuple[BackendsDeployment, ...], _says("One Deployment, or several that serve different backends.")
    ] = (BackendsDeployment(),)
    resources: Annotated[Json, _says("Requests and limits of each container.")] = field(default_factory=_small)


class Platform(Block, frozen=True):
    """The operator that deploys our scheduler and its services."""

    enabled: Annotated[
        bool, _says("Run the scheduler and its services. Switch it off where KAI itself is installed.")
    ] = True
    resources: Annotated[Json, _says("Requests and limits of the operator's container.")] = field(
        default_factory=_small
    )


class Dashboard(Block, frozen=True):
    """The pages that show gangs, queues and racks."""

    enabled: Annotated[bool, _says("Run the dashboard, with a Service of the same name.")] = True
    resources: Annotated[Json, _says("Requests and limits of its container.")] = field(default_factory=_small)
    config: Annotated[Json, _says("Its configuration, such as `login`, `proxy`, `tls` and `limits`.")] = {}


class Shard(Block, frozen=True):
    """A scheduler for a part of the nodes."""

    name: Annotated[str, _says("The name of the SchedulingShard.")]
    spec: Annotated[Json, _says("Its spec.")] = {}


class Share(Block, frozen=True):
    """What the default queues get of one resource; -1 is no limit."""

    quota: Annotated[float, _says("Guaranteed. Pods that are not preemptible must fit into it.")] = -1
    limit: Annotated[float, _says("The most that the queue may use.")] = -1
    over_quota_weight: Annotated[float, _says("Its part of what others leave unused.")] = 1


class Queues(Block, frozen=True):
    """The queues `default-parent-queue` and `default-queue`, created where they are missing."""

    enabled: Annotated[bool, _says("Create them.")] = True
    gpu: Annotated[Share, _says("GPUs.")] = Share()
    cpu: Annotated[Share, _says("Thousandths of CPU cores.")] = Share()
    memory: Annotated[Share, _says("Megabytes of memory.")] = Share()


class Certificates(Block, frozen=True):
    """Who makes the certificate of the operator's webhooks. The platform always makes those of its services."""

    mode: Annotated[
        Literal["own", "cert-manager", "supplied"],
        _says("`own`: the operator makes and renews it. `cert-manager`: cert-manager does. `supplied`: you do."),
    ] = "own"
    secret: Annotated[
        str, _says("The Secret with tls.crt and tls.key; written by cert-manager, or supplied by you.")
    ] = "spinney-grove-webhook-tls"
    ca_bundle: Annotated[str, _says("With `supplied`: who signed it, PEM in base64.")] = ""
    issuer_kind: Annotated[
        Literal["", "Issuer", "ClusterIssuer"], _says("With `cert-manager`: the issuer's kind; empty makes one.")
    ] = ""
    issuer_name: Annotated[str, _says("With `cert-manager`: the issuer's name.")] = "spinney"


class Monitoring(Block, frozen=True):
    """What Prometheus and Grafana get."""

    enabled: Annotated[
        bool, _says("ServiceMonitors and alert rules, where the cluster serves monitoring.coreos.com/v1.")
    ] = True
    labels: Annotated[dict[str, str], _says("Labels for them, by which a Prometheus may select.")] = {}
    dashboard: Annotated[bool, _says("A dashboard for Grafana, as ConfigMap with the label `grafana_dashboard`.")] = (
        True
    )


class Log(Block, frozen=True):
    """What components log."""

    format: Annotated[Literal["json", "text"], _says("One JSON object per line, or text for people.")] = "json"
    level: Annotated[Literal["debug", "info", "warning", "error"], _says("The least that is logged.")] = "info"


class Values(Block, frozen=True):
    """All choices of an installation. Nothing needs to be set."""

    image: Annotated[Image, _says("The image of all containers.")] = Image()
    replicas: Annotated[int, Meta(ge=1), _says("Pods of every Deployment; with 2, one stands by.")] = 1
    grove: Annotated[Grove, _says("The operator of PodCliqueSets.")] = Grove()
    backends: Annotated[Backends, _says("The controllers that turn gangs into the objects of schedulers.")] = Backends()
    platform: Annotated[Platform, _says("The operator that deploys our scheduler and its services.")] = Platform()
    dashboard: Annotated[Dashboard, _says("The pages that show gangs, queues and racks.")] = Dashboard()
    config: Annotated[
        Json, _says("The spec of Config: which services run, and how. Fields win over what other values say.")
    ] = field(default_factory=lambda: {"admission": {"gpuSharing": True}})
    shards: Annotated[tuple[Shard, ...], _says("One scheduler for all nodes, or several.")] = (Shard(name="default"),)
    queues: Annotated[Queues, _says("The default queues.")] = Queues()
    priority_classes: Annotated[
        bool, _says("Create the PriorityClasses train, build-preemptible, build and inference.")
    ] = True
    priority_class_name: Annotated[str, _says("The PriorityClass of our own pods.")] = ""
    tolerations: Annotated[tuple[Json, ...], _says("Tolerations of our own pods.")] = ()
    node_selector: Annotated[dict[str, str], _says("The nodes of our own pods.")] = {}
    certificates: Annotated[Certificates, _says("Certificates of the operator's webhooks.")] = Certificates()
    excluded_namespaces: Annotated[
        tuple[str, ...], _says("Namespaces about whose pods no webhook asks, beside kube-system and our own.")
    ] = ()
    pod_disruption_budgets: Annotated[bool, _says("Keep one pod of each Deployment, where there are several.")] = True
    network_policies: Annotated[
        bool,
        _says("Let others reach webhooks, metrics and pages of our pods, and nothing else; our pods reach anyone."),
    ] = True
    aggregated_roles: Annotated[
        bool,
        _says(
            "Let the roles view, edit and admin include our kinds, and create `spinney-cluster-view`, which shows the "
            "whole cluster."
        ),
    ] = True
    monitoring: Annotated[Monitoring, _says("What Prometheus and Grafana get.")] = Monitoring()
    log: Annotated[Log, _says("What components log.")] = Log()


def plain(values: Values) -> Json:
    """The values as Helm has them."""
    result: Json = msgspec.to_builtins(values)
    return result


def read_values(layers: list[Json]) -> Values:
    """The defaults, changed by one layer after the other as Helm does: maps are merged, anything else is replaced."""
    merged = plain(Values())
    for layer in layers:
        merged = _merge(merged, layer)
    try:
        values = msgspec.convert(merged, Values, strict=True)
    except msgspec.ValidationError as error:
        raise wrong_value("values", str(error).replace(" - at `$.", ": at `")) from error
    if wrong := [*problems(plain(values)), *_contradictions(values)]:
        raise wrong_value("values", wrong[0])
    return values


def _contradictions(values: Values) -> Iterator[str]:
    """What no schema of one value can say."""
    if values.certificates.mode == "supplied" and not values.certificates.ca_bundle:
        yield "with mode `supplied`, API servers have to be told who signed the certificate: at `certificates.caBundle`"
    for path, names in (
        ("backends.deployments", [each.name for each in values.backends.deployments]),
        ("shards", [each.name for each in values.shards]),
    ):
        if len(names) > len(set(names)):
            yield f"two have the same name: at `{path}`"


def setting(text: str) -> Json:
    """A layer from `a.b=value`; the value is read as YAML."""
    path, sign, value = text.partition("=")
    if not sign or not path:
        raise wrong_value("--set", f"{text!r}: say PATH=VALUE, such as image.tag=1.2.3")
    try:
        layer: Any = read_yaml(value)
    except YamlError as error:
        raise wrong_value("--set", f"{text!r}: the value is not YAML: {error}") from error
    for part in reversed(path.split(".")):
        layer = {part: layer}
    result: Json = layer
    return result


def _merge(under: Json, over: Json) -> Json:
    result = dict(under)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = _merge(result[key], value)
        else:
            result[key] = value
    return result
