"""The responses of webhooks: read, checked, and their patches applied."""

from __future__ import annotations

import base64
import binascii

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.errors import Refusal, internal
from spinney.embedded.apiserver.http.bodies import UnreadableBody, must_be_object, parse
from spinney.embedded.apiserver.write.json_patch import PatchDoesNotApply, apply_json_patch

_REVIEW = "admission.k8s.io/v1"
_NOT_CALLED = "failed to call webhook: "
_INVALID = "received invalid webhook response: "


class BadAnswer(Exception):
    """A response that cannot be used; the message says why."""


def read(body: bytes, uid: str) -> Json:
    """The response to the request of that UID."""
    review = _review(body)
    response = review.get("response")
    if not isinstance(response, dict):
        raise BadAnswer(_INVALID + "webhook response was absent")
    if response.get("uid", "") != uid:
        raise BadAnswer(_INVALID + f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    patch, kind = response.get("patch"), response.get("patchType")
    if patch and not kind:
        raise BadAnswer(_INVALID + "webhook returned response.patch but not response.patchType")
    if kind and not patch:
        raise BadAnswer(_INVALID + "webhook returned response.patchType but not response.patch")
    return response


def _review(body: bytes) -> Json:
    try:
        review = must_be_object(parse(body, "application/yaml"))
    except UnreadableBody as error:
        raise BadAnswer(_NOT_CALLED + str(error)) from None
    kind, version = review.get("kind", "AdmissionReview"), review.get("apiVersion", _REVIEW)
    if kind == "AdmissionReview" and version == "admission.k8s.io/v1beta1":
        problem = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        raise BadAnswer(_NOT_CALLED + problem)
    if (kind, version) != ("AdmissionReview", _REVIEW):
        problem = f'no kind "{kind}" is registered for version "{version}"'
        raise BadAnswer(_NOT_CALLED + problem)
    return dict(review)


def patched(response: Json, document: Json) -> Json:
    """The object with the patch of a response applied; the same object if the patch is empty."""
    try:
        text = base64.b64decode(response["patch"], validate=True)
    except binascii.Error:
        raise BadAnswer(_NOT_CALLED + "illegal base64 data at input byte 0") from None
    try:
        operations = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"received undecodable patch in webhook response: {error}") from None
    if not operations:
        return document
    if response.get("patchType") != "JSONPatch":
        raise BadAnswer(f'unsupported patch type "{response.get("patchType")}"')
    copied: Json = msgspec.json.decode(encode(document))
    try:
        return apply_json_patch(copied, operations)
    except PatchDoesNotApply as error:
        raise internal(error.why) from None
    except Refusal as refusal:
        raise internal(refusal.message) from None
