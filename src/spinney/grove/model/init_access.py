"""Access of the start-up-order init container: an account, a role that reads pods, and a token in a Secret."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.grove.model import names
from spinney.grove.model.metadata import set_metadata

_RBAC = "rbac.authorization.k8s.io"


def service_account(pcs: PodCliqueSet) -> Json:
    """The account of the set's init containers."""
    name = names.service_account(pcs.name)
    return {"metadata": set_metadata(pcs, name, labels.POD_SERVICE_ACCOUNT), "automountServiceAccountToken": True}


def role(pcs: PodCliqueSet) -> Json:
    """The role that reads pods of the namespace."""
    return {
        "metadata": set_metadata(pcs, names.role(pcs.name), labels.POD_ROLE),
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}],
    }


def role_binding(pcs: PodCliqueSet) -> Json:
    """The binding of the role to the account."""
    name = names.role(pcs.name)
    account = names.service_account(pcs.name)
    return {
        "metadata": set_metadata(pcs, name, labels.POD_ROLE_BINDING),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": pcs.namespace}],
    }


def token_secret(pcs: PodCliqueSet) -> Json:
    """The account's token; the cluster's token controller fills it, and pods that mount it wait for that."""
    name = names.token_secret(pcs.name)
    metadata = set_metadata(pcs, name, labels.TOKEN_SECRET)
    metadata["annotations"] = {labels.SERVICE_ACCOUNT_NAME: names.service_account(pcs.name)}
    return {"metadata": metadata, "type": "kubernetes.io/service-account-token"}
