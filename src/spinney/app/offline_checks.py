"""Check manifests as the API server and the operator's admission would, without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

import msgspec

from spinney.api.crd import definition
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.manifest import objects_in
from spinney.api.meta import Json, Object, convert
from spinney.api.pod import PodSpec
from spinney.api.quantity import milli
from spinney.api.yaml_reader import YamlError
from spinney.app.errors import UserError
from spinney.embedded.apiserver.resources.pod_defaults import pod_spec
from spinney.embedded.apiserver.resources.validation.pod_specs import check_spec
from spinney.embedded.apiserver.schema.conform import conform
from spinney.embedded.apiserver.schema.misfit import Misfit
from spinney.embedded.apiserver.schema.structural import prune
from spinney.embedded.apiserver.schema.structural_checks import Checker
from spinney.grove.admission.sets import ClusterFacts, check_create
from spinney.grove.model.topology import Levels

T = TypeVar("T", bound=Object)


def read_documents(filename: str) -> list[Json]:
    """The objects of a file, those inside Lists too; `-` is stdin."""
    try:
        text = sys.stdin.read() if filename == "-" else Path(filename).read_text()
        return objects_in(text)
    except OSError as error:
        raise UserError(f"{filename}: {error.strerror}", exit_code=2) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{filename}: not text: {error.reason} at byte {error.start}", exit_code=2) from error
    except YamlError as error:
        raise UserError(f"{filename}: not YAML: {' '.join(str(error).split())}", exit_code=2) from error


def typed(kind: type[T], document: Json) -> T:
    """An object that the API server would store; what its schema refuses is a one-line error."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    called = f"{kind.resource.kind} {name or '(without a name)'}"
    if not isinstance(name, str) or not name:
        raise UserError(f"{called}: metadata.name: Required value: name or generateName is required")
    if document.get("apiVersion") != kind.resource.api_version:
        version = document.get("apiVersion")
        raise UserError(f"{called}: apiVersion is {version!r}, use {kind.resource.api_version!r}")
    schema = _schema(kind)
    checker = Checker()
    checker.check(prune(_body(document), schema, "", []), schema, "")
    if checker.errors:
        raise UserError(f"{called}: {'; '.join(map(str, checker.errors))}")
    try:
        return convert(kind, document)
    except msgspec.ValidationError as error:
        raise UserError(f"{called}: {error}") from error


def unknown_fields(kind: type[Object], document: Json) -> list[str]:
    """The fields of an object that its schema does not know, and the API server would drop."""
    unknown: list[str] = []
    prune(_body(document), _schema(kind), "", unknown)
    return unknown


def _schema(kind: type[Object]) -> Json:
    schema: Json = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _body(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}


def binding_named(name: str, documents: Sequence[Json]) -> ClusterTopologyBinding | None:
    """The topology that a set names, if it is among the documents."""
    bindings = [document for document in documents if document.get("kind") == ClusterTopologyBinding.resource.kind]
    checked = [typed(ClusterTopologyBinding, document) for document in bindings]
    return next((binding for binding in checked if binding.name == name), None)


def admission_problems(document: Json, levels: Levels) -> tuple[str, ...]:
    """What admission finds wrong with a set that has its defaults; its topology has these levels."""
    problems: list[str] = []
    for index, clique in enumerate(document["spec"]["template"]["cliques"]):
        problems += _pod_problems(clique["spec"].get("podSpec") or {}, f"spec.template.cliques[{index}].spec.podSpec")
    if problems:
        return tuple(problems)
    bindings = {levels.name: [domain for domain, _ in levels.keys]} if levels.keys else {}
    return tuple(map(str, check_create(document, ClusterFacts(mnnvl=True, bindings=bindings)).errors))


def _pod_problems(spec: Json, path: str) -> list[str]:
    """What the API server would say of a clique's pods."""
    try:
        convert(PodSpec, spec)
    except msgspec.ValidationError as error:
        return [f"{path}: {error}"]
    if wrong := [*_wrong_quantities(spec, path)]:
        return wrong
    try:
        # Numbers without quotes become quantities, as in the API server.
        pod, _ = conform({"metadata": {}, "spec": deepcopy(spec)}, "", "v1", "Pod")
    except Misfit as error:
        return [f"{path}{error.field.removeprefix('spec')}: {error.problem}"]
    pod_spec(pod["spec"])
    return [str(error) for error in check_spec(pod["spec"], path)]


def _wrong_quantities(spec: Json, path: str) -> Iterator[str]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for side, amounts in (container.get("resources") or {}).items():
                for name, amount in amounts.items() if isinstance(amounts, dict) else ():
                    if isinstance(amount, dict | list):
                        continue  # Not a quantity at all: the types of the spec are checked next.
                    try:
                        milli(amount)
                    except ValueError as error:
                        yield f"{path}.{kind}[{index}].resources.{side}[{name}]: {error}"
