"""Every field of our kinds, from the schemas that API servers check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from scripts.reference.tables import code, opening, table

from spinney.api.crd import OUR_GROUPS, crds
from spinney.api.meta import Json

_TEXT = """The kinds that Spinney defines, and their fields. `kubectl explain pcs.spec.template` shows the same. Fields
in **bold** are required. `[]` after a name stands for each item of a list, `{}` for each value of a map."""
_LIMITS = {"minimum": "At least", "maximum": "At most", "minItems": "Items at least", "maxItems": "Items at most"}
# What Kubernetes itself describes.
_KUBERNETES = {
    *("affinity", "tolerations", "daemonsetsTolerations", "resources", "securityContext", "vpa", "templateSpec"),
    *(
        "reservationPodSecurityContext",
        "reservationContainerSecurityContext",
        "conditions",
        "devices",
        "deviceRequests",
    ),
    *("nodeSelector", "metadata"),
}
_MEANINGS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("fields.yaml").read_text())


def page() -> str:
    """The page of kinds."""
    lines = opening("API", _TEXT)
    for definition in crds(OUR_GROUPS):
        for version in definition["spec"]["versions"]:
            lines += _kind(definition["spec"], version)
    return "\n".join(lines)


def _kind(spec: Json, version: Json) -> Iterator[str]:
    names = spec["names"]
    short = f", `{'`, `'.join(names['shortNames'])}`" if names.get("shortNames") else ""
    schema = version["schema"]["openAPIV3Schema"]
    scope = "in a namespace" if spec["scope"] == "Namespaced" else "for the whole cluster"
    yield from (f"## {names['kind']}", "", schema.get("description", ""), "")
    yield f"`{spec['group']}/{version['name']}`, {scope}; for kubectl `{names['plural']}`{short}."
    yield ""
    for part in ("spec", "status"):
        if part in schema["properties"]:
            fields = Fields(names["kind"])
            yield from table(("field", "type", "meaning"), fields.of(schema["properties"][part], f"{part}."))


class Fields:
    """The fields of one kind; an object that occurs again is described where it occurs first."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._described: dict[str, str] = {}

    def of(self, schema: Json, path: str) -> Iterator[tuple[str, str, str]]:
        """A row for each field below a schema."""
        required = set(schema.get("required", ()))
        for name, field in schema.get("properties", {}).items():
            place, inner = _place(f"{path}{name}", field)
            shown = f"**{code(place)}**" if name in required else code(place)
            elsewhere = self._elsewhere(name, place, inner)
            yield shown, _type(field, inner), f"{self._meaning(name, field, inner)} {elsewhere}"
            if not elsewhere:
                yield from self.of(inner, f"{place}.")

    def _elsewhere(self, name: str, place: str, inner: Json) -> str:
        if "properties" not in inner:
            return ""
        if name in _KUBERNETES:
            return "As in Kubernetes."
        first = self._described.setdefault(inner.get("description") or place, place)
        return "" if first == place else f"Fields as in {code(first)}."

    def _meaning(self, name: str, field: Json, inner: Json) -> str:
        known = _MEANINGS.get(f"{self._kind}.{name}") or _MEANINGS.get(name, "")
        parts = [field.get("description") or inner.get("description") or known]
        if "enum" in inner:
            parts.append("One of " + ", ".join(code(str(value)) for value in inner["enum"] if value != "") + ".")
        parts += [f"{words} {inner[key]}." for key, words in _LIMITS.items() if key in inner]
        default = field.get("default")
        if isinstance(default, bool):
            parts.append(f"Default `{str(default).lower()}`.")
        elif isinstance(default, int | float) or default:
            parts.append(f"Default `{default}`." if not isinstance(default, dict | list) else "")
        if checks := [rule["message"] for rule in field.get("x-kubernetes-validations", ()) if "message" in rule]:
            parts.append(f"Checked: {'; '.join(checks)}.")
        return " ".join(filter(None, parts))


def _place(path: str, field: Json) -> tuple[str, Json]:
    if field.get("type") == "array":
        return f"{path}[]", field["items"]
    if isinstance(field.get("additionalProperties"), dict):
        return f"{path}{{}}", field["additionalProperties"]
    return path, field


def _type(field: Json, inner: Json) -> str:
    name = "number or text" if inner.get("x-kubernetes-int-or-string") else inner.get("type", "any")
    if field.get("type") == "array":
        return f"list of {name}"
    return f"map of {name}" if field is not inner else str(name)
