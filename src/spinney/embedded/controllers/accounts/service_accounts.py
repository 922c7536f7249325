"""Service accounts: one named `default` and the CA of the cluster in every namespace, and tokens in Secrets."""

from __future__ import annotations

import base64
from collections.abc import Callable

from spinney.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from spinney.api.labels import SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_UID
from spinney.api.meta import Key
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.errors import AlreadyExists, Forbidden, NotFound
from spinney.kube.runtime import Runtime

ROOT_CA = "kube-root-ca.crt"
_ABOUT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class ServiceAccounts:
    """Creates the `default` account and the CA's ConfigMap in every namespace."""

    def __init__(self, runtime: Runtime, ca_certificate: str) -> None:
        self._client = runtime.client
        self._ca = ca_certificate
        self._namespaces = runtime.caches.of(Namespace)
        self._accounts = runtime.caches.of(ServiceAccount)
        self._maps = runtime.caches.of(ConfigMap, fields=f"metadata.name={ROOT_CA}")
        self.controller = Controller("serviceaccount", runtime, self._reconcile)
        self.controller.watch(self._namespaces, lambda change: [("", change.object.name)])
        self.controller.watch(
            self._accounts,
            lambda change: [("", change.object.namespace)],
            when=lambda change: change.new is None and change.object.name == "default",
        )
        self.controller.watch(self._maps, lambda change: [("", change.object.namespace)])

    async def _reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(key[1])
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        try:
            if self._accounts.get((namespace.name, "default")) is None:
                await self._client.create(ServiceAccount, {"metadata": {"name": "default"}}, namespace.name)
            await self._publish_ca(namespace.name)
        except (AlreadyExists, NotFound, Forbidden):
            # Created meanwhile, or the namespace is being deleted.
            return

    async def _publish_ca(self, namespace: str) -> None:
        config_map = self._maps.get((namespace, ROOT_CA))
        data = {"ca.crt": self._ca}
        if config_map is None:
            metadata = {"name": ROOT_CA, "annotations": {"kubernetes.io/description": _ABOUT_CA}}
            await self._client.create(ConfigMap, {"metadata": metadata, "data": data}, namespace)
        elif config_map.data != data:
            await self._client.patch(ConfigMap, (namespace, ROOT_CA), {"data": data})


TYPE = "kubernetes.io/service-account-token"

# Issues the token of an account for a Secret.
Issue = Callable[[ServiceAccount, Secret], str]


class Tokens:
    """Fills the token secrets of service accounts."""

    def __init__(self, runtime: Runtime, issue: Issue, ca_certificate: str) -> None:
        self._client = runtime.client
        self._issue = issue
        self._ca = ca_certificate
        self._accounts = runtime.caches.of(ServiceAccount)
        self._secrets = runtime.caches.of(Secret, fields=f"type={TYPE}")
        self._secrets.index("account", lambda secret: (f"{secret.namespace}/{_account_of(secret)}",))
        self.controller = Controller("tokens", runtime, self._reconcile)
        self.controller.watch(self._secrets).watch(self._accounts, self._secrets_of)

    def _secrets_of(self, change: Change[ServiceAccount]) -> list[Key]:
        account = f"{change.object.namespace}/{change.object.name}"
        return [secret.key for secret in self._secrets.by("account", account)]

    async def _reconcile(self, key: Key) -> None:
        secret = self._secrets.get(key)
        if secret is None or secret.type != TYPE or secret.metadata.deletion_timestamp is not None:
            return
        account = self._accounts.get((secret.namespace, _account_of(secret)))
        uid = secret.metadata.annotations.get(SERVICE_ACCOUNT_UID, "")
        try:
            if account is None or (uid and uid != account.uid):
                if uid:
                    # The account of this token is gone.
                    await self._client.delete(Secret, secret.key, uid=secret.uid)
                return
            if not uid or not {"token", "ca.crt", "namespace"} <= secret.data.keys():
                await self._fill(secret, account)
        except NotFound:
            return

    async def _fill(self, secret: Secret, account: ServiceAccount) -> None:
        data = {
            "token": _base64(self._issue(account, secret)),
            "ca.crt": _base64(self._ca),
            "namespace": _base64(secret.namespace),
        }
        metadata = {"uid": secret.uid, "annotations": {SERVICE_ACCOUNT_UID: account.uid}}
        await self._client.patch(Secret, secret.key, {"metadata": metadata, "data": data})


def _account_of(secret: Secret) -> str:
    return secret.metadata.annotations.get(SERVICE_ACCOUNT_NAME, "")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
