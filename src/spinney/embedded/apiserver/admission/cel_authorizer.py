"""The `authorizer` variable of admission rules, answered by RBAC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spinney.api.meta import Json
from spinney.cel.authorizer import deciding_by
from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.apiserver.access.rbac import Authorizer, attributes_of
from spinney.embedded.apiserver.calls import Call


@contextmanager
def authorizer_variable(authorizer: Authorizer, call: Call) -> Iterator[Json]:
    """The value of `authorizer`: it answers for the user of a request, or for the account that a rule names."""

    def decide(request: Mapping[str, Any]) -> str | None:
        user = account_user(*request["account"]) if "account" in request else call.user
        return authorizer.allows(user, attributes_of(request))

    kind = call.kind
    resource = {"group": kind.group, "resource": kind.plural, "subresource": call.subresource}
    with deciding_by(decide):
        yield {"requestResource": {**resource, "namespace": call.namespace, "name": call.name}}
