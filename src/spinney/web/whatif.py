"""Read what-if requests of browsers, and refuse those that would cost too much."""

from __future__ import annotations

from spinney.answers.whatif.changes import AddNodes, ChangeError, Create, WhatIfRequest, read_request

_MOST_CHANGES = 50
_MOST_NODES = 1000
_MOST_OBJECTS = 50


def read_bounded_request(body: bytes) -> WhatIfRequest:
    """A request from JSON; one that is wrong or too large is a `ChangeError`."""
    request = read_request(body)
    changes = request.changes
    if len(changes) > _MOST_CHANGES:
        raise ChangeError(f"{len(changes)} changes: at most {_MOST_CHANGES} are tried at once")
    nodes = sum(change.count for change in changes if isinstance(change, AddNodes))
    if nodes > _MOST_NODES:
        raise ChangeError(f"{nodes} new nodes: at most {_MOST_NODES} are tried at once")
    objects = sum(len(change.objects) for change in changes if isinstance(change, Create))
    if objects > _MOST_OBJECTS:
        raise ChangeError(f"{objects} new objects: at most {_MOST_OBJECTS} are tried at once")
    return request
