"""CEL rules of a schema (`x-kubernetes-validations`), evaluated on objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney.api.meta import Json
from spinney.cel.costs import Budget
from spinney.cel.expressions import CompileError, EvaluationError, OutOfBudgetError, evaluate
from spinney.embedded.apiserver.errors import FieldError, required, shown
from spinney.embedded.apiserver.schema.shapes import schemas_below
from spinney.embedded.apiserver.schema.structural_checks import json_type

_NO_MORE_RULES = "validation failed due to running out of cost budget, no further validation rules will be run"
_OLD = re.compile(r"\boldSelf\b")


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
    # The rule with date-time and duration fields converted, since the engine sees strings.
    evaluated: str
    typed: str

    @staticmethod
    def of(entry: Json, schema: Json) -> Rule:
        """A rule as a schema writes it."""
        text = entry["rule"]
        return Rule(
            text,
            entry.get("message", "").strip(),
            entry.get("messageExpression", ""),
            entry.get("reason", ""),
            entry.get("fieldPath", ""),
            _OLD.search(text) is not None,
            bool(entry.get("optionalOldSelf")),
            _with_moments(text, schema),
            _CONVERSIONS.get(schema.get("format", ""), "") if schema.get("type") == "string" else "",
        )

    def check(self, value: Any, old: Any, path: str, budget: Budget) -> FieldError | None:
        """The error of a value that breaks the rule; `old` is None if there was no value before."""
        if self.transition and old is None and not self.optional_old:
            return None
        values = {"self": value}
        if self.transition:
            values["oldValue" if self.optional_old else "oldSelf"] = old
        omit = isinstance(value, dict | list)
        try:
            if evaluate(self._bound(self.evaluated, values), values, budget) is True:
                return None
        except EvaluationError as error:
            if budget.is_spent:
                raise
            detail = f"{error} evaluating rule: {self.message or self.text}"
            return _error("", path or "<nil>", json_type(value), detail)
        detail = self._detail(values, budget)
        where = path + self.field_path if self.field_path else path
        return _error(self.reason, where.lstrip(".") or "<nil>", None if omit else value, detail)

    def _bound(self, text: str, values: Mapping[str, Any]) -> str:
        """Bind optionals and timestamps, which cannot be passed in as values, through lists of one element."""
        if "oldValue" in values:
            old_self = "optional.none()" if values["oldValue"] is None else f"optional.of({self.typed}(oldValue))"
            text = f"[{old_self}].map(oldSelf, {text})[0]"
        elif self.typed and "oldSelf" in values:
            text = f"[{self.typed}(oldSelf)].map(oldSelf, {text})[0]"
        return f"[{self.typed}(self)].map(self, {text})[0]" if self.typed else text

    def _detail(self, values: Mapping[str, Any], budget: Budget) -> str:
        # In a messageExpression Kubernetes does not support an optional oldSelf.
        if self.message_expression and not ("oldValue" in values and _OLD.search(self.message_expression)):
            try:
                message = evaluate(self._bound(self.message_expression, values), values, budget)
                if isinstance(message, str) and message.strip() and "\n" not in message:
                    return message
            except (EvaluationError, CompileError):
                if budget.is_spent:
                    raise
        return self.message or f"failed rule: {self.text.strip()}"


_CONVERSIONS = {"date-time": "timestamp", "datetime": "timestamp", "duration": "duration", "date": "timestamp"}


def _with_moments(text: str, schema: Json, path: str = "") -> str:
    """A rule in which date-time and duration fields are converted from strings, except inside `has()`."""
    for name, below in (schema.get("properties") or {}).items():
        where = f"{path}.{escaped(name)}"
        conversion = _CONVERSIONS.get(below.get("format", "")) if below.get("type") == "string" else None
        if conversion is not None:
            text = re.sub(
                rf"(?<!has\()\b((?:self|oldSelf){re.escape(where)})\b(?!\s*[.(]\s*\?)", rf"{conversion}(\1)", text
            )
        elif below.get("properties"):
            text = _with_moments(text, below, where)
    return text


def _error(reason: str, path: str, value: Any, detail: str) -> FieldError:
    shown_value = "" if value is None else f" {shown(value)}:"
    match reason:
        case "FieldValueForbidden":
            return FieldError(reason, path, f"Forbidden: {detail}")
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return FieldError(reason, path, f"Duplicate value:{shown_value} {detail}")
    return FieldError("FieldValueInvalid", path, f"Invalid value:{shown_value} {detail}")


def rules_below(schema: Json) -> bool:
    """Whether a schema has rules, at any depth."""
    return bool(schema.get("x-kubernetes-validations")) or any(map(rules_below, schemas_below(schema)))


class Rules:
    """The rules of a schema, where they apply. Made once per version of a definition."""

    def __init__(self, schema: Json, *, root: bool = False) -> None:
        self._rules = [Rule.of(entry, schema) for entry in schema.get("x-kubernetes-validations") or ()]
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
        """The errors of an object; what all its rules cost together is bounded, as in Kubernetes."""
        try:
            return self._check(value, old, path, Budget())
        except OutOfBudgetError:
            return [_error("", path or "<nil>", json_type(value), _NO_MORE_RULES)]

    def _check(self, value: Any, old: Any, path: str, budget: Budget) -> list[FieldError]:
        if value is old and value is not None and not self._transitions:
            return []
        errors: list[FieldError] = []
        view = self._view(value)
        before = self._view(old) if old is not None else None
        for rule in self._rules:
            error = rule.check(view, before, path, budget)
            if error is not None and (rule.transition or old is None or value != old):
                errors.append(error)
        if isinstance(value, dict):
            was = old if isinstance(old, dict) else {}
            for name, rules in self._members.items():
                if value.get(name) is not None:
                    errors += rules._check(value[name], was.get(name), f"{path}.{name}" if path else name, budget)
            if self._values is not None:
                for name, item in value.items():
                    errors += self._values._check(item, was.get(name), f"{path}[{name}]" if path else name, budget)
        elif isinstance(value, list) and self._items is not None:
            errors += self._list(value, old, path, budget)
        return errors

    def _list(self, value: list[Any], old: Any, path: str, budget: Budget) -> list[FieldError]:
        assert self._items is not None
        old_by_key: dict[tuple[Any, ...], Any] = {}
        if self._correlated and isinstance(old, list):
            old_by_key = {tuple(item.get(key) for key in self._keys): item for item in old if isinstance(item, dict)}
        errors: list[FieldError] = []
        for at, item in enumerate(value):
            name = tuple(item.get(key) for key in self._keys) if isinstance(item, dict) else ()
            errors += self._items._check(item, old_by_key.get(name), f"{path}[{at}]", budget)
        return errors

    def _view(self, value: Any) -> Any:
        """The value as rules see it: only the names of the metadata, and escaped property names."""
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
