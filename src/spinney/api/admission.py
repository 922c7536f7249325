"""Admission: webhook configurations, and the requests and responses of webhooks."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Json, Object, Resource, Struct
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


class GroupVersionKind(Struct, frozen=True):
    """A kind."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(Struct, frozen=True):
    """A resource."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(Struct, frozen=True):
    """The user who sent a request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class AdmissionRequest(Struct, frozen=True):
    """The request that is reviewed."""

    uid: str = ""
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    request_kind: GroupVersionKind = GroupVersionKind()
    request_resource: GroupVersionResource = GroupVersionResource()
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: UserInfo = UserInfo()
    object: Json | None = None
    old_object: Json | None = None
    dry_run: bool = False
    options: Json | None = None


class AdmissionResponse(Struct, frozen=True):
    """The response to a review; the patch is a JSON patch in base64."""

    uid: str = ""
    allowed: bool = False
    status: Json | None = None
    patch: str = ""
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
