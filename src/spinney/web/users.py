"""Who asks: by bearer token or session cookie, or by the headers of a trusted proxy."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.web.settings import DashboardSettings, Proxy

COOKIE = "spinney-token"
# A browser keeps about four kilobytes in a cookie.
LONGEST_TOKEN = 3800
_TOKEN_REVIEW = Resource("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False)
_REVIEW_SECONDS = 30.0
_MOST_REVIEWS = 4096


@dataclass(frozen=True)
class WebUser:
    """A user as SubjectAccessReviews name them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class NotLoggedIn(Exception):
    """The request has no token, or one that the API server does not accept."""


class Identity(Protocol):
    """Finds the user who sends a request."""

    async def user(self, request: web.Request) -> WebUser | None:
        """The user; None where there is no login, and NotLoggedIn is raised where one is missing."""


class Anyone:
    """No login: every user of the loopback address sees what this process may read."""

    async def user(self, request: web.Request) -> WebUser | None:
        """None: users are not told apart."""
        return None


class ByToken:
    """A bearer token, in the header or in the cookie of the login page, reviewed by the API server."""

    def __init__(self, client: Client, time: Callable[[], float]) -> None:
        self._client = client
        self._time = time
        # Hash of a token → until when the review counts, and its user.
        self._reviews: dict[str, tuple[float, WebUser | None]] = {}

    async def user(self, request: web.Request) -> WebUser | None:
        """The user of the request's token."""
        scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
        token = sent.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
        return await self.review(token)

    async def review(self, token: str) -> WebUser:
        """The user of a token, or NotLoggedIn."""
        if not token or not token.isascii() or len(token) > LONGEST_TOKEN:
            raise NotLoggedIn("log in with a token of the cluster")
        digest = hashlib.sha256(token.encode()).hexdigest()
        until, user = self._reviews.get(digest, (0.0, None))
        if until <= self._time():
            answer = await self._client.create(_TOKEN_REVIEW, {"spec": {"token": token}})
            user = _reviewed(answer)
            if len(self._reviews) >= _MOST_REVIEWS:
                self._reviews.clear()
            self._reviews[digest] = (self._time() + _REVIEW_SECONDS, user)
        if user is None:
            raise NotLoggedIn("the cluster does not accept this token: it may have expired")
        return user


class ByProxy:
    """The headers of an authenticating proxy, believed only from its own addresses."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._trusted = [ipaddress.ip_network(network) for network in proxy.trusted]

    async def user(self, request: web.Request) -> WebUser | None:
        """The user whom the proxy names."""
        peer = ipaddress.ip_address(request.remote or "0.0.0.0")
        if not any(peer in network for network in self._trusted):
            raise NotLoggedIn("requests are accepted from the configured proxy only")
        name = request.headers.get(self._proxy.user_header, "")
        if not name:
            raise NotLoggedIn(f"the proxy sent no {self._proxy.user_header}")
        sent = ",".join(request.headers.getall(self._proxy.groups_header, []))
        groups = {group.strip() for group in sent.split(",")} - {""}
        return WebUser(name, tuple(sorted(groups | {"system:authenticated"})))


def identity(settings: DashboardSettings, client: Client, time: Callable[[], float]) -> Identity:
    """The way of logging in that the settings choose."""
    if settings.login == "token":
        return ByToken(client, time)
    if settings.login == "proxy":
        return ByProxy(settings.proxy)
    return Anyone()


def _reviewed(answer: Json) -> WebUser | None:
    status = answer.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return None
    extra = tuple(sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items()))
    return WebUser(user["username"], tuple(user.get("groups") or ()), user.get("uid", ""), extra)
