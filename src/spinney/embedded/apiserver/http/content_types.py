"""Content types: what a body is written in, what an Accept header asks for, and YAML or indented JSON as an answer."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import yaml

from spinney.embedded.apiserver.errors import Refusal
from spinney.kube.client.transport import Request, Response

BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
JSON = {"content-type": "application/json", "cache-control": "no-cache, private"}
OBJECT, TABLE, PARTIAL, PARTIALS = "", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
# Lists can be watched as well.
LISTS = f"{_ACCEPTED}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
# Bytes of JSON that are converted to YAML. More would block the loop, and is sent as it is, since JSON is YAML, too.
_MOST_TO_REWRITE = 64 * 1024
_VERSIONS = (("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1"))


def media_type(request: Request) -> str:
    """The content type of a request without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip() or "application/json"


@lru_cache(maxsize=256)
def representation(accept: str, available: str = _ACCEPTED) -> str:
    """The form that an Accept header asks for first: Table, PartialObjectMetadata(List) or the object itself."""
    unknown = False
    for wanted in accept.split(",") if accept else ("*/*",):
        media, *parameters = (part.strip() for part in wanted.split(";"))
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        form = values.get("as", "")
        if form and (values.get("g"), values.get("v")) not in _VERSIONS:
            unknown = True
            continue
        if form == "Table":
            return TABLE
        if form in (PARTIAL, PARTIALS):
            return form
        if not form:
            return OBJECT
        unknown = True
    if unknown:
        raise _other_form()
    if "application/vnd.kubernetes.protobuf" in accept:
        return OBJECT
    raise _unacceptable(available)


def check_acceptable(accept: str, available: str) -> None:
    """Refuse an Accept header without a content type that is served; the form (`as=…`) is ignored."""
    if not _given(accept) & {*available.split(", "), "*/*"}:
        raise _unacceptable(available)


def check_content_type(accept: str) -> None:
    """Refuse an Accept header without a content type that is served, where all of them are."""
    if not _given(accept) & {*_ACCEPTED.split(", "), "*/*"}:
        raise _other_form()


def check_plain_form(accept: str) -> None:
    """Refuse an Accept header that asks for a Table or partial metadata, where there is only one form."""
    if representation(accept) != OBJECT:
        raise _other_form()


def _given(accept: str) -> set[str]:
    return {part.partition(";")[0].strip() for part in accept.split(",")} if accept else {"*/*"}


def _other_form() -> Refusal:
    return Refusal(406, "NotAcceptable", f"only the following media types are accepted: {_ACCEPTED}")


def _unacceptable(available: str) -> Refusal:
    return Refusal(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


class _Dumper(yaml.SafeDumper):
    """YAML as Go writes it: a string that looks like another type is in double quotes."""


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # it has no types
    plain = tag == "tag:yaml.org,2002:str"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _string)


def in_requested_form(request: Request, response: Response) -> Response:
    """Convert a response to YAML or indented JSON, if the request asks for it."""
    if response.stream is not None or not response.body.startswith(b"{"):
        return response
    accept = request.headers.get("accept", "")
    if accept.startswith("application/yaml"):
        in_yaml = {**response.headers, "content-type": "application/yaml"}
        if len(response.body) > _MOST_TO_REWRITE:
            return Response(response.status, response.body, in_yaml)
        text = yaml.dump(msgspec.json.decode(response.body), Dumper=_Dumper, sort_keys=True, allow_unicode=True)
        return Response(response.status, text.encode(), in_yaml)
    if any(name == "pretty" and value in ("true", "1") for name, value in request.query):
        return Response(response.status, msgspec.json.format(response.body, indent=2), response.headers)
    return response
