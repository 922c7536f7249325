"""CEL rules (`x-kubernetes-validations`, match conditions) with the functions that Kubernetes adds to the language."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded import celauthorizer
from spinney.embedded.errors import FieldError, required, shown

_T = cel.Type
_LIST = _T.List(_T.DYN)
_MAP = _T.Map(_T.STRING, _T.DYN)


_SCALARS = {"integer": _T.INT, "string": _T.STRING, "boolean": _T.BOOL}
_KINDS = ("integer", "string", "boolean", "array", "object")
_COLLECTIONS = tuple(f"{kind} {inner}" for kind in _KINDS[3:] for inner in _KINDS[:3])
# The first letter of a variable that stands in for a field, by the field's type.
_LETTERS = dict(zip((*_KINDS, *_COLLECTIONS), "isbaoABCMNO", strict=True))
_LONGEST = 60
_OPERATOR = re.compile(r"found no matching overload for '[^\w']*_[^\w']*_?' applied to '(.*)'")


class BadRule(Exception):
    """A rule that does not compile."""


def _function(name: str, *overloads: tuple[list[Any], Any, Any, bool]) -> Any:
    made = [
        cel.Overload(id=f"{name}_{at}", parameters=parameters, return_type=result, impl=impl, is_member=member)
        for at, (parameters, result, impl, member) in enumerate(overloads)
    ]
    return cel.FunctionDecl(name, made)


def _quantity(text: str) -> Json:
    return {"quantity": quantity.canonical(text)}


def _is_quantity(text: str) -> bool:
    try:
        quantity.exact(text)
    except ValueError:
        return False
    return True


def _amount(value: Mapping[str, Any]) -> Any:
    return quantity.exact(value["quantity"])


def _url(text: str) -> Json:
    return {"url": text}


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc) or text.startswith("/")


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _find_all(text: str, pattern: str) -> list[str]:
    return [match.group(0) for match in re.finditer(pattern, text)]


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match.group(0) if match else ""


_FUNCTIONS = [
    _function("quantity", ([_T.STRING], _MAP, _quantity, False)),
    _function("isQuantity", ([_T.STRING], _T.BOOL, _is_quantity, False)),
    _function("isGreaterThan", ([_MAP, _MAP], _T.BOOL, lambda a, b: _amount(a) > _amount(b), True)),
    _function("isLessThan", ([_MAP, _MAP], _T.BOOL, lambda a, b: _amount(a) < _amount(b), True)),
    _function(
        "compareTo",
        ([_MAP, _MAP], _T.INT, lambda a, b: (_amount(a) > _amount(b)) - (_amount(a) < _amount(b)), True),
    ),
    _function("isInteger", ([_MAP], _T.BOOL, lambda a: _amount(a).denominator == 1, True)),
    _function("asInteger", ([_MAP], _T.INT, lambda a: int(_amount(a)), True)),
    _function("asApproximateFloat", ([_MAP], _T.DOUBLE, lambda a: float(_amount(a)), True)),
    _function("sign", ([_MAP], _T.INT, lambda a: (_amount(a) > 0) - (_amount(a) < 0), True)),
    _function("isSorted", ([_LIST], _T.BOOL, lambda a: all(x <= y for x, y in pairwise(a)), True)),
    _function("sum", ([_LIST], _T.DYN, sum, True)),
    _function("min", ([_LIST], _T.DYN, min, True)),
    _function("max", ([_LIST], _T.DYN, max, True)),
    _function("find", ([_T.STRING, _T.STRING], _T.STRING, _find, True)),
    _function(
        "findAll",
        ([_T.STRING, _T.STRING], _T.List(_T.STRING), _find_all, True),
        ([_T.STRING, _T.STRING, _T.INT], _T.List(_T.STRING), lambda t, p, n: _find_all(t, p)[:n], True),
    ),
    _function("url", ([_T.STRING], _MAP, _url, False)),
    _function("isURL", ([_T.STRING], _T.BOOL, _is_url, False)),
    _function("getScheme", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).scheme, True)),
    _function("getHost", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).netloc, True)),
    _function("getHostname", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).hostname or "", True)),
    _function("getPort", ([_MAP], _T.STRING, lambda u: str(urlsplit(u["url"]).port or ""), True)),
    _function("getEscapedPath", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).path, True)),
    _function("getQuery", ([_MAP], _MAP, lambda u: parse_qs(urlsplit(u["url"]).query), True)),
    _function("isIP", ([_T.STRING], _T.BOOL, _is_ip, False)),
    _function("isCIDR", ([_T.STRING], _T.BOOL, _is_cidr, False)),
    _function("sets.contains", ([_LIST, _LIST], _T.BOOL, lambda a, b: all(x in a for x in b), False)),
    _function("sets.intersects", ([_LIST, _LIST], _T.BOOL, lambda a, b: any(x in a for x in b), False)),
    _function(
        "sets.equivalent",
        ([_LIST, _LIST], _T.BOOL, lambda a, b: all(x in a for x in b) and all(x in b for x in a), False),
    ),
    *celauthorizer.functions(_function, _T),
]


@lru_cache(maxsize=64)
def _environment(names: tuple[str, ...]) -> Any:
    return _made_environment(dict.fromkeys(names, _T.DYN))


@lru_cache(maxsize=8)
def _typed_environment(name: str) -> Any:
    kind = {"integer": _T.INT, "string": _T.STRING, "boolean": _T.BOOL}[name]
    return _made_environment({"self": kind, "oldSelf": kind})


def _made_environment(variables: dict[str, Any]) -> Any:
    return cel.NewEnv(
        variables=variables,
        extensions=[
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ],
        functions=_FUNCTIONS,
    )


@lru_cache(maxsize=4096)
def program(text: str, names: tuple[str, ...]) -> Any:
    """A compiled expression over these variables."""
    try:
        return _environment(names).compile(text)
    except RuntimeError as error:
        raise BadRule(_compile_error(error)) from None


def _compile_error(error: RuntimeError) -> str:
    return str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")


def checked(text: str, schema: Json) -> str:
    """The type that a rule over a value of this schema evaluates to; raises where the rule does not compile."""
    kind = str(program(text, ("self", "oldSelf")).return_type())
    typed = {"integer": _T.INT, "string": _T.STRING, "boolean": _T.BOOL}.get(schema.get("type", ""))
    if typed is None or schema.get("format") or schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        return kind
    if any(
        (entry.get("optionalOldSelf") and entry.get("rule") == text) for entry in schema["x-kubernetes-validations"]
    ):
        return kind
    try:
        return str(_typed_environment(schema["type"]).compile(text).return_type())
    except RuntimeError as error:
        # Kubernetes compares numbers of different types, which this engine knows only of untyped values.
        if "double" in str(error) or "uint" in str(error):
            return kind
        raise BadRule(_compile_error(error)) from None


def stand_in(schema: Json, length: int) -> str:
    """A variable of so many letters whose type is that of the schema; none where the type can be several."""
    letter = _LETTERS.get(_type_name_of(schema), "")
    return letter + "_" * (length - 1) if letter and length <= _LONGEST else ""


def _type_name_of(schema: Json) -> str:
    kind = schema.get("type", "")
    marks = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    if any(schema.get(mark) for mark in marks) or (schema.get("format") and kind != "integer"):
        return ""
    below = schema.get("items") if kind == "array" else schema.get("additionalProperties")
    if not isinstance(below, dict):
        return str(kind) if kind in _SCALARS else ""
    inner = _type_name_of(below)
    return f"{kind} {inner}" if inner in _SCALARS else str(kind)


@lru_cache(maxsize=1)
def _stand_ins() -> Any:
    """An environment with every stand-in."""
    types = dict(_SCALARS)
    for name, inner in (*_SCALARS.items(), ("", _T.DYN)):
        types[f"array {name}".strip()] = _T.List(inner)
        types[f"object {name}".strip()] = _T.Map(_T.STRING, inner)
    variables = {
        _LETTERS[name] + "_" * more: kind for name, kind in types.items() for more in range(len("self"), _LONGEST)
    }
    return _made_environment({"self": _T.DYN, "oldSelf": _T.DYN, **variables})


def mistyped(text: str) -> str:
    """What is wrong with the types in a rule of stand-ins: operators that do not take what they are given."""
    try:
        _stand_ins().compile(text)
    except RuntimeError as error:
        told = _compile_error(error)
        # Numbers of different types are compared by Kubernetes, and what is not an operator may be a function of its.
        found = _OPERATOR.search(told)
        return told if found and not re.search("double|uint|dyn", found[1]) else ""
    return ""


class Failed(Exception):
    """An expression that could not be evaluated."""


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression."""
    result = program(text, tuple(values)).eval(data=dict(values))
    if result.type() == _T.ERROR:
        raise Failed(_told(str(result.value())))
    return result.plain_value()


def _told(message: str) -> str:
    """A run-time error as Kubernetes' own engine puts it."""
    missing = re.match(r'NOT_FOUND: Key not found in map : "?(.*?)"?$', message)
    if missing:
        return f"no such key: {missing[1]}"
    if "No matching overloads" in message:
        return "no such overload"
    return message.partition(": ")[2] or message


@dataclass(frozen=True)
class Rule:
    """One entry of `x-kubernetes-validations`."""

    text: str
    message: str
    message_expression: str
    reason: str
    field_path: str
    transition: bool
    optional_old: bool

    @staticmethod
    def of(entry: Json) -> Rule:
        """A rule as a schema writes it."""
        text = entry["rule"]
        return Rule(
            text,
            entry.get("message", "").strip(),
            entry.get("messageExpression", ""),
            entry.get("reason", ""),
            entry.get("fieldPath", ""),
            re.search(r"\boldSelf\b", text) is not None,
            bool(entry.get("optionalOldSelf")),
        )

    def check(self, value: Any, old: Any, path: str) -> FieldError | None:
        """What the rule has against a value; `old` is None where there was none."""
        if self.transition and old is None and not self.optional_old:
            return None
        text, values = self.text, {"self": value}
        if self.transition:
            values["oldSelf"] = old
            if self.optional_old:
                # The one-element list binds oldSelf to an optional, which cannot be handed in.
                made = "optional.of(oldValue)" if old is not None else "optional.none()"
                text = f"[{made}].all(oldSelf, {self.text})"
                values = {"self": value, "oldValue": old}
        omit = isinstance(value, dict | list)
        try:
            if evaluate(text, values) is True:
                return None
        except Failed as error:
            detail = f"{error} evaluating rule: {self.message or self.text}"
            return _error("", path, _type_name(value), detail)
        detail = self._detail(values)
        where = path + self.field_path if self.field_path else path
        return _error(self.reason, where.lstrip("."), None if omit else value, detail)

    def _detail(self, values: Mapping[str, Any]) -> str:
        if self.message_expression:
            try:
                told = evaluate(self.message_expression, values)
                if isinstance(told, str) and told.strip() and "\n" not in told:
                    return told
            except (Failed, BadRule):
                pass
        return self.message or f"failed rule: {self.text.strip()}"


def _type_name(value: Any) -> str:
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _error(reason: str, path: str, value: Any, detail: str) -> FieldError:
    told = "" if value is None else f" {shown(value)}:"
    match reason:
        case "FieldValueForbidden":
            return FieldError(reason, path, f"Forbidden: {detail}")
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return FieldError(
                reason, path, f"Duplicate value:{told} {detail}" if told else f"Duplicate value: {detail}"
            )
    return FieldError("FieldValueInvalid", path, f"Invalid value:{told} {detail}")


def rules_below(schema: Json) -> bool:
    """Whether a schema has rules, at any depth."""
    if schema.get("x-kubernetes-validations"):
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(rules_below(item) for item in below if isinstance(item, dict))


class Rules:
    """The rules of a schema, where they apply. Made once per version of a definition."""

    def __init__(self, schema: Json, *, root: bool = False) -> None:
        self._rules = [Rule.of(entry) for entry in schema.get("x-kubernetes-validations") or ()]
        self._keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
        self._root = root
        self._members = {
            name: Rules(item) for name, item in (schema.get("properties") or {}).items() if rules_below(item)
        }
        self._correlated = schema.get("x-kubernetes-list-type") == "map"
        items, extra = schema.get("items"), schema.get("additionalProperties")
        self._items = Rules(items) if isinstance(items, dict) and rules_below(items) else None
        self._values = Rules(extra) if isinstance(extra, dict) and rules_below(extra) else None
        self._renamed = {name: renamed for name in schema.get("properties") or {} if (renamed := escaped(name)) != name}
        below = [*self._members.values(), *(rules for rules in (self._items, self._values) if rules is not None)]
        self._transitions: bool = any(rule.transition for rule in self._rules) or any(r._transitions for r in below)

    def check(self, value: Any, old: Any, path: str = "") -> list[FieldError]:
        """What the rules have against a value and what is below it."""
        if value is old and value is not None and not self._transitions:
            return []
        found: list[FieldError] = []
        seen = self._view(value)
        before = self._view(old) if old is not None else None
        for rule in self._rules:
            error = rule.check(seen, before, path)
            if error is not None and (rule.transition or old is None or value != old):
                found.append(error)
        if isinstance(value, dict):
            was = old if isinstance(old, dict) else {}
            for name, rules in self._members.items():
                if value.get(name) is not None:
                    found += rules.check(value[name], was.get(name), f"{path}.{name}" if path else name)
            if self._values is not None:
                for name, item in value.items():
                    found += self._values.check(item, was.get(name), f"{path}[{name}]" if path else name)
        elif isinstance(value, list) and self._items is not None:
            found += self._list(value, old, path)
        return found

    def _list(self, value: list[Any], old: Any, path: str) -> list[FieldError]:
        assert self._items is not None
        known: dict[tuple[Any, ...], Any] = {}
        if self._correlated and isinstance(old, list):
            known = {tuple(item.get(key) for key in self._keys): item for item in old if isinstance(item, dict)}
        found: list[FieldError] = []
        for at, item in enumerate(value):
            name = tuple(item.get(key) for key in self._keys) if isinstance(item, dict) else ()
            found += self._items.check(item, known.get(name), f"{path}[{at}]")
        return found

    def _view(self, value: Any) -> Any:
        """The value as rules see it: only names of the metadata, and property names that CEL can spell."""
        if not isinstance(value, dict):
            return value
        if self._root and isinstance(value.get("metadata"), dict):
            names = {key: value["metadata"][key] for key in ("name", "generateName") if key in value["metadata"]}
            value = {**value, "metadata": names}
        if self._renamed:
            value = {self._renamed.get(key, key): item for key, item in value.items()}
        return value


_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


def escaped(name: str) -> str:
    """A property name as CEL expressions spell it."""
    if name in _RESERVED:
        return f"__{name}__"
    for plain, spelled in (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        name = name.replace(plain, spelled)
    return name
