"""Admission: webhook configurations."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Object, Resource, Struct
from spinney.api.selector import LabelSelector

VERSION = "admissionregistration.k8s.io/v1"


class ServiceReference(Struct, frozen=True):
    """The service in front of a webhook."""

    namespace: str = ""
    name: str = ""
    path: str = ""
    port: int = 443


class ClientConfig(Struct, frozen=True):
    """The address of a webhook."""

    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""


class RuleWithOperations(Struct, frozen=True):
    """The operations and resources that a webhook reviews."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"


class MatchCondition(Struct, frozen=True):
    """A CEL expression that a request must meet to be sent."""

    name: str = ""
    expression: str = ""


class Webhook(Struct, frozen=True):
    """One webhook of a configuration."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: tuple[RuleWithOperations, ...] = ()
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()
    side_effects: str = ""
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ()
    reinvocation_policy: str = "Never"
    match_conditions: tuple[MatchCondition, ...] = ()


class MutatingWebhookConfiguration(Object, frozen=True):
    """Mutating webhooks."""

    resource: ClassVar[Resource] = Resource(
        VERSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
    )

    webhooks: tuple[Webhook, ...] = ()


class ValidatingWebhookConfiguration(Object, frozen=True):
    """Validating webhooks."""

    resource: ClassVar[Resource] = Resource(
        VERSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
    )

    webhooks: tuple[Webhook, ...] = ()
