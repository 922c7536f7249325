"""Service accounts: one named `default` and the cluster's CA in every namespace."""

from __future__ import annotations

from spinney.api.core import ConfigMap, Namespace, ServiceAccount
from spinney.api.meta import Key
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
