"""Checks of a container's environment variables."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources.validation import downward_api, names

_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE = "may not have more than one field specified at a time"


def check_variables(variables: list[Json], path: str) -> list[FieldError]:
    """Check variables, each with a value or a source of it."""
    errors: list[FieldError] = []
    for at, variable in enumerate(variables):
        where, name = f"{path}[{at}]", variable.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        elif not names.ENV_NAME.match(name):
            errors.append(invalid(f"{where}.name", name, _RULE))
        if variable.get("valueFrom") is not None:
            errors += _source(variable, f"{where}.valueFrom")
    return errors


def _source(variable: Json, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    sources = [key for key in _SOURCES if source.get(key) is not None]
    errors: list[FieldError] = []
    if "fieldRef" in sources:
        errors += downward_api.check_field(source["fieldRef"], f"{path}.fieldRef", downward_api.VARIABLES)
    if "resourceFieldRef" in sources:
        errors += downward_api.check_resource(source["resourceFieldRef"], f"{path}.resourceFieldRef")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key in sources:
            errors += _key(source[key], f"{path}.{key}")
    if not sources:
        which = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {which}"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(sources) > 1:
        errors.append(invalid(path, "", _ONE))
    return errors


def _key(reference: Json, path: str) -> list[FieldError]:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = [invalid(f"{path}.name", name, problem) for problem in naming.subdomain_problems(name)]
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + names.check_config_key(key, f"{path}.key")


def check_sources(sources: list[Json], path: str) -> list[FieldError]:
    """Check references to ConfigMaps and Secrets whose keys all become variables."""
    errors: list[FieldError] = []
    for at, source in enumerate(sources):
        prefix = source.get("prefix", "")
        if prefix and not names.ENV_NAME.match(prefix):
            errors.append(invalid(f"{path}[{at}].prefix", prefix, _RULE))
        references = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in references:
            where, name = f"{path}[{at}].{key}.name", source[key].get("name", "")
            if not name:
                errors.append(required(where))
            else:
                errors += [invalid(where, name, problem) for problem in naming.subdomain_problems(name)]
        if not references:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(references) > 1:
            errors.append(invalid(path, "", _ONE))
    return errors
