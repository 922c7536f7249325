"""Authentication by certificate or token, and impersonation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import unquote

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.credentials import ISSUER, Tokens, account_user
from spinney.embedded.apiserver.access.rbac import Attributes, Authorizer
from spinney.embedded.apiserver.calls import ANONYMOUS
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, bad_request
from spinney.embedded.apiserver.store.store import Item, load
from spinney.kube.client.transport import Request, User

AUTHENTICATED = "system:authenticated"
_ACCOUNT = "system:serviceaccount:"
_EXTRA = "impersonate-extra-"
# What a token can be bound to, by its claim.
_BOUND = {"pod": "/pods", "secret": "/secrets", "node": "/nodes"}
_LAST_REQUESTS = timedelta(seconds=60)


class Authenticator:
    """Finds the user of a request, by certificate or token, and whom it impersonates."""

    def __init__(self, core: Core, tokens: Tokens, authorizer: Authorizer) -> None:
        self.core = core
        self.tokens = tokens
        self.authorizer = authorizer

    def identify(self, request: Request) -> User:
        """The user whose rights count for a request."""
        user = request.user if request.user is not None else self._by_token(request.headers)
        if request.headers.get("impersonate-user"):
            return self._impersonated(user, request.headers)
        return _without_impersonation(user, request)

    def _by_token(self, headers: Mapping[str, str]) -> User:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        return self.user_of_token(token.strip())

    def user_of_token(self, token: str) -> User:
        """The service account of a token; one that is not valid, or meant for another server, is refused."""
        claims = self.tokens.claims(token, self.core.clock.now())
        user = self.account_of_token(token)
        if user is None or claims is None or ISSUER not in claims.get("aud", (ISSUER,)):
            raise Refusal(401, "Unauthorized", "Unauthorized")
        return user

    def account_of_token(self, token: str) -> User | None:
        """The service account of a token; None where it, or what the token is bound to, was deleted."""
        claims = self.tokens.claims(token, self.core.clock.now())
        if claims is None:
            return None
        _, _, namespace, name = claims["sub"].split(":")
        account = self.core.store.get("/serviceaccounts", f"{namespace}/{name}")
        if account is None or account.uid != claims["kubernetes.io"]["serviceaccount"]["uid"]:
            return None
        if not self._is_alive(namespace, claims["kubernetes.io"]):
            return None
        return account_user(namespace, name, account.uid)

    def _is_alive(self, namespace: str, bound: Json) -> bool:
        """Whether the object exists that a token is bound to."""
        for kind, table in _BOUND.items():
            if kind not in bound:
                continue
            name, uid = bound[kind]["name"], bound[kind].get("uid")
            item = self.core.store.get(table, name if kind == "node" else f"{namespace}/{name}")
            if item is None or uid not in (None, item.uid) or self._is_long_deleted(item):
                return False
        return True

    def _is_long_deleted(self, item: Item) -> bool:
        """Whether an object should be gone for a minute, as Kubernetes allows its last requests."""
        if not item.going:
            return False
        deleted = datetime.fromisoformat(load(item)["metadata"]["deletionTimestamp"])
        return self.core.clock.now() > deleted + _LAST_REQUESTS

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers["impersonate-user"]
        groups = [group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip()]
        check = self.authorizer.check
        own_groups: tuple[str, ...] = ()
        if name.startswith(_ACCOUNT) and name.count(":") == 3:
            _, _, namespace, account = name.split(":")
            check(user, Attributes("impersonate", "", "serviceaccounts", "", namespace, account))
            own_groups = account_user(namespace, account).groups
        else:
            check(user, Attributes("impersonate", "", "users", "", "", name))
        for group in groups:
            check(user, Attributes("impersonate", "", "groups", "", "", group))
        groups = groups or list(own_groups)
        extra = {
            unquote(key.removeprefix(_EXTRA)): (value,) for key, value in headers.items() if key.startswith(_EXTRA)
        }
        for key, values in extra.items():
            for value in values:
                check(user, Attributes("impersonate", "authentication.k8s.io", "userextras", key, "", value))
        if headers.get("impersonate-uid"):
            check(user, Attributes("impersonate", "authentication.k8s.io", "uids", "", "", headers["impersonate-uid"]))
        if name != ANONYMOUS.name and AUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)
        return User(name, tuple(groups), headers.get("impersonate-uid", ""), extra)


def user_info(user: User) -> Json:
    """A user as reviews describe one."""
    info: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(value) for key, value in user.extra.items()}
    return info


def _without_impersonation(user: User, request: Request) -> User:
    for header in request.headers:
        if header in ("impersonate-group", "impersonate-uid") or header.startswith(_EXTRA):
            raise bad_request(f"the header {header} needs impersonate-user beside it")
    return user
