"""Who asks: by certificate or token, and as whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.apiserver.access.rbac import Attributes
from spinney.embedded.apiserver.calls import ANONYMOUS
from spinney.embedded.apiserver.errors import bad_request
from spinney.kube.client.transport import Request, User

if TYPE_CHECKING:
    from spinney.embedded.apiserver.server import ApiServer

AUTHENTICATED = "system:authenticated"
_ACCOUNT = "system:serviceaccount:"
_EXTRA = "impersonate-extra-"


def identify(server: ApiServer, request: Request) -> User:
    """The user whose rights count for a request."""
    user = request.user if request.user is not None else _by_token(server, request.headers)
    if request.headers.get("impersonate-user"):
        return _impersonated(server, user, request.headers)
    return _alone(user, request)


def _alone(user: User, request: Request) -> User:
    told: list[str] = []
    for key, value in request.headers.items():
        if key == "impersonate-group":
            told += [f"{{Group  {group.strip()}    }}" for group in value.split(",")]
        elif key == "impersonate-uid":
            told.append(f"{{UID  {value}  authentication.k8s.io/v1  }}")
        elif key.startswith(_EXTRA):
            told.append(f"{{UserExtra  {value}  authentication.k8s.io/v1  {key.removeprefix(_EXTRA)}}}")
    if told:
        raise bad_request(f"requested [{' '.join(told)}] without impersonating a user")
    return user


def _by_token(server: ApiServer, headers: Mapping[str, str]) -> User:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return ANONYMOUS
    return server.user_of_token(token.strip())


def user_of_token(server: ApiServer, token: str) -> User | None:
    """The service account that a token speaks for, as long as that very account is there."""
    claims = server.tokens.claims(token, server.clock.now())
    if claims is None:
        return None
    _, _, namespace, name = claims["sub"].split(":")
    account = server.store.get("/serviceaccounts", f"{namespace}/{name}")
    if account is None or account.uid != claims["kubernetes.io"]["serviceaccount"]["uid"]:
        return None
    return account_user(namespace, name, account.uid)


def _impersonated(server: ApiServer, user: User, headers: Mapping[str, str]) -> User:
    name = headers["impersonate-user"]
    groups = [group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip()]
    check = server.authorizer.check
    if name.startswith(_ACCOUNT) and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        check(user, Attributes("impersonate", "", "serviceaccounts", "", namespace, account))
        if not groups:
            return account_user(namespace, account)
    else:
        check(user, Attributes("impersonate", "", "users", "", "", name))
    for group in groups:
        check(user, Attributes("impersonate", "", "groups", "", "", group))
    extra = {unquote(key.removeprefix(_EXTRA)): (value,) for key, value in headers.items() if key.startswith(_EXTRA)}
    for key, values in extra.items():
        for value in values:
            check(user, Attributes("impersonate", "authentication.k8s.io", "userextras", key, "", value))
    if headers.get("impersonate-uid"):
        check(user, Attributes("impersonate", "authentication.k8s.io", "uids", "", "", headers["impersonate-uid"]))
    if name != ANONYMOUS.name and AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    return User(name, tuple(groups), headers.get("impersonate-uid", ""), extra)
