"""Token Secrets of service accounts: filled, and deleted with their account."""

from __future__ import annotations

import base64
from collections.abc import Callable

from spinney.api.core import Secret, ServiceAccount
from spinney.api.labels import SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_UID
from spinney.api.meta import Key
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

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
