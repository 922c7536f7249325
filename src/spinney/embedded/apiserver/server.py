"""The API server: requests in, answers out. No sockets, threads or files; time and chance are handed in."""

from __future__ import annotations

import re

import structlog

from spinney.api.meta import encode
from spinney.embedded.apiserver.access.authentication import Authenticator
from spinney.embedded.apiserver.access.credentials import Tokens
from spinney.embedded.apiserver.access.rbac import Authorizer
from spinney.embedded.apiserver.admission.remote_webhooks import over_https
from spinney.embedded.apiserver.admission.webhooks import Admission, Resolver
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, internal
from spinney.embedded.apiserver.followers.aggregated_roles import RoleAggregator
from spinney.embedded.apiserver.followers.custom_definitions import DefinitionFollower
from spinney.embedded.apiserver.followers.follower import Follower
from spinney.embedded.apiserver.followers.garbage_collector import GarbageCollector
from spinney.embedded.apiserver.followers.namespaces import NamespaceFollower
from spinney.embedded.apiserver.followers.quota_status import QuotaFollower
from spinney.embedded.apiserver.http import content_types
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.http.router import Router
from spinney.embedded.apiserver.read.watch import Watches
from spinney.embedded.apiserver.resources import bootstrap
from spinney.embedded.apiserver.resources.pod_spec_cache import PodSpecs
from spinney.embedded.apiserver.resources.registry import built_in
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, Item, NotDurable, Store
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response
from spinney.kube.clock import Clock

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MOST_WARNING_LETTERS = 4 * 1024
_LETTERS_OF_A_WARNING = 256
_RETRY_SOON = {"retryAfterSeconds": 1}
_log = structlog.get_logger("spinney.embedded")


class ApiServer:
    """A Kubernetes API in this process."""

    def __init__(
        self,
        clock: Clock,
        chance: Chance,
        *,
        store: Store | None = None,
        bookmark_seconds: float = 60.0,
        resolve_webhook: Resolver | None = None,
        token_key: bytes = b"",
    ) -> None:
        self.store = store or Store()
        self.kinds = kinds = Kinds(built_in())
        self.core = core = Core(clock, chance, self.store, frozenset(kind.table for kind in kinds))
        authorizer = Authorizer(self.store)
        self.tokens = Tokens(token_key or chance.uid().encode())
        self.authenticator = Authenticator(core, self.tokens, authorizer)
        self.admission = Admission(core, kinds, authorizer, resolve_webhook or over_https)
        self._pipeline = Pipeline(core, kinds, authorizer, self.admission, PodSpecs(self.store, self.admission))
        self.watches = Watches(core, bookmark_seconds)
        self.router = Router(self._pipeline, self.authenticator, self.watches)
        # What clients have to trust, where someone serves this API over HTTPS.
        self.ca_certificate = ""
        self._followers: tuple[Follower, ...] = (
            DefinitionFollower(core, kinds),
            self.admission,
            authorizer,
            RoleAggregator(core),
            self._pipeline.pod_specs,
            GarbageCollector(core, kinds),
            NamespaceFollower(core, kinds),
            QuotaFollower(core, kinds),
        )
        self._followers_by_table: dict[str, tuple[Follower, ...]] = {}
        self.store.listeners.append(self._follow)

    async def start(self) -> None:
        """Make what every cluster has from its first day."""
        await bootstrap.fill(self._pipeline)

    def _follow(self, table: str, event: Event) -> None:
        for follower in self._followers_of(table):
            follower.follow(table, event)

    def _followers_of(self, table: str) -> tuple[Follower, ...]:
        followers = self._followers_by_table.get(table)
        if followers is None:
            followers = tuple(each for each in self._followers if each.tables is None or table in each.tables)
            self._followers_by_table[table] = followers
        return followers

    def restore(self, table: str, item: Item) -> None:
        """Restore a stored object, and notify the followers of writes."""
        self.store.restore(table, item)
        self._follow(table, Event(item.version, item, None))

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        warnings: list[str] = []
        journal = self.store.journal
        if journal is not None and journal.failing and request.method not in ("GET", "HEAD"):
            # Once the disk has no room, nothing more is taken in until all that was taken in is stored.
            try:
                await self.store.durable()
            except NotDurable as error:
                return _not_stored(error)
        try:
            response = await self.router.route(request, warnings)
        except Refusal as refusal:
            response = Response(refusal.code, encode(refusal.body()), _headers(refusal))
        except Exception as error:
            # A defect of ours must not cost others their connection.
            _log.exception("request.failed", method=request.method, path=request.path)
            response = Response(500, encode(internal(f"{type(error).__name__}: {error}").body()), JSON)
        if request.method == "HEAD":
            response = Response(response.status, b"", response.headers)
        if journal is not None:
            # No answer, of a write or of a read, tells of anything that a crash could undo.
            try:
                await self.store.durable()
            except NotDurable as error:
                # The write may have happened, and may be stored later: the client has to look.
                response = _not_stored(error)
        if request.query or request.headers.get("accept", "").startswith("application/yaml"):
            response = content_types.in_requested_form(request, response)
        header_texts = _told(warnings) if warnings else []
        if not header_texts:
            return response
        header = ", ".join(f'299 - "{_quoted(text)}"' for text in header_texts)
        return Response(response.status, response.body, {**response.headers, "warning": header}, response.stream)


def _not_stored(error: Exception) -> Response:
    refusal = Refusal(503, "ServiceUnavailable", f"the store cannot be written: {error}", _RETRY_SOON)
    return Response(refusal.code, encode(refusal.body()), _headers(refusal))


def _headers(refusal: Refusal) -> dict[str, str]:
    retry = (refusal.details or {}).get("retryAfterSeconds")
    return {**JSON, "retry-after": str(retry)} if retry else JSON


def _told(warnings: list[str]) -> list[str]:
    """The warnings that a header can hold, as in Kubernetes: without control characters, and long ones cut."""
    texts = [text for text in dict.fromkeys(warnings) if not _CONTROL.search(text)]
    if sum(map(len, texts)) <= _MOST_WARNING_LETTERS:
        return texts
    cut: list[str] = []
    letters = 0
    for text in texts:
        if letters >= _MOST_WARNING_LETTERS:
            break
        cut.append(text[:_LETTERS_OF_A_WARNING])
        letters += len(cut[-1])
    return cut


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
