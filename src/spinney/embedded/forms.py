"""The forms of an answer: what an Accept header asks for, and YAML or indented JSON from the JSON that is kept."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import yaml

from spinney.embedded.errors import Refusal
from spinney.kube.transport import Request, Response

OBJECT, TABLE, PARTIAL = "", "Table", "PartialObjectMetadata"
_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_NOTHING = (
    f"406: Not Acceptable\n\nAvailable representations: {_ACCEPTED}, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


_VERSIONS = (("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1"))


@lru_cache(maxsize=256)
def representation(accept: str) -> str:
    """The form that an Accept header asks for first: Table, PartialObjectMetadata or the object itself."""
    unknown = False
    for wanted in accept.split(",") if accept else ("*/*",):
        media, *parameters = (part.strip() for part in wanted.split(";"))
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        form = given.get("as", "")
        if form and (given.get("g"), given.get("v")) not in _VERSIONS:
            unknown = True
            continue
        if form == "Table":
            return TABLE
        if form in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return PARTIAL
        if not form:
            return OBJECT
        unknown = True
    if unknown:
        raise Refusal(406, "NotAcceptable", f"only the following media types are accepted: {_ACCEPTED}")
    if "application/vnd.kubernetes.protobuf" in accept:
        return OBJECT
    raise Refusal(406, "NotAcceptable", _NOTHING, {})


class _Dumper(yaml.SafeDumper):
    """YAML as Go writes it: strings that look like something else are in double quotes."""


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # it has no types
    plain = tag == "tag:yaml.org,2002:str"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _string)


def finished(request: Request, response: Response) -> Response:
    """The response in the form that was asked for, where that is not compact JSON."""
    if response.stream is not None or not response.body.startswith(b"{"):
        return response
    accept = request.headers.get("accept", "")
    if accept.startswith("application/yaml"):
        text = yaml.dump(msgspec.json.decode(response.body), Dumper=_Dumper, sort_keys=True, allow_unicode=True)
        return Response(response.status, text.encode(), {**response.headers, "content-type": "application/yaml"})
    if any(name == "pretty" and value in ("true", "1") for name, value in request.query):
        return Response(response.status, msgspec.json.format(response.body, indent=2), response.headers)
    return response
