"""Admission reviews: the responses of a webhook, and its reviewer as a function of bytes."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from spinney.api.meta import Json, encode
from spinney.kube.difference import json_patch
from spinney.kube.metrics import Metrics
from spinney.kube.runtime import Component, Runtime, Webhook

_log = structlog.get_logger("spinney.kube.admission.review")

Reviewer = Callable[[bytes], Awaitable[bytes]]


def allowed(request: Json, warnings: Sequence[str] = ()) -> Json:
    """Allow the request."""
    answer: Json = {"uid": request.get("uid", ""), "allowed": True}
    if warnings:
        answer["warnings"] = list(warnings)
    return answer


def refused(request: Json, message: str, *, code: int = 403, reason: str = "Forbidden") -> Json:
    """Refuse the request with a message for its sender."""
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"uid": request.get("uid", ""), "allowed": False, "status": status}


def checked(request: Json, subject: str, errors: Sequence[str], warnings: Sequence[str]) -> Json:
    """Refuse the request as Invalid where there are errors, else allow it with warnings."""
    if errors:
        return refused(request, f"{subject}: {'; '.join(errors)}", code=422, reason="Invalid")
    return allowed(request, warnings)


def changed(request: Json, wanted: Json, warnings: Sequence[str] = ()) -> Json:
    """Allow the request and change its object to the wanted one."""
    answer = allowed(request, warnings)
    if operations := list(json_patch(request.get("object") or {}, wanted)):
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(encode(operations)).decode()
    return answer


def reviewers(component: Component, runtime: Runtime) -> dict[str, Reviewer]:
    """The reviewer of each webhook path of a component: encoded AdmissionReview in, encoded AdmissionReview out."""
    return {hook.path: _reviewer(hook, hook.review(runtime), runtime.client.metrics) for hook in component.webhooks}


def _reviewer(hook: Webhook, review: Callable[[Json], Awaitable[Json]], metrics: Metrics) -> Reviewer:
    async def answer(body: bytes) -> bytes:
        document: Json = msgspec.json.decode(body)
        request: Json = document["request"]
        try:
            response = await review(request)
        except RecursionError:
            response = refused(request, "the object is nested too deeply", code=400, reason="BadRequest")
        except msgspec.ValidationError as error:
            # Our types are narrower than the schema that the object has passed.
            response = refused(request, f"the object cannot be read: {error}", code=400, reason="BadRequest")
        except Exception:
            # With failurePolicy Fail the API server would refuse the request anyway, but without a reason.
            _log.exception("review.failed", webhook=hook.name, name=request.get("name"))
            message = f"webhook {hook.name}: internal error, see its log"
            response = refused(request, message, code=500, reason="InternalError")
        metrics.reviews(hook.name, str(response["allowed"]).lower()).inc()
        return msgspec.json.encode(
            {
                "apiVersion": document.get("apiVersion", "admission.k8s.io/v1"),
                "kind": "AdmissionReview",
                "response": response,
            }
        )

    return answer
