"""Checks of label selectors in specs."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required
from spinney.embedded.apiserver.resources.validation import names


def check_selector(selector: Json | None, path: str) -> list[FieldError]:
    """Check a `metav1.LabelSelector`."""
    selector = selector or {}
    errors = names.check_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    return errors + check_expressions(selector, path)


def check_expressions(selector: Json, path: str, comparing: tuple[str, ...] = ()) -> list[FieldError]:
    """Check the `matchExpressions` of a selector. Those of node selectors may also compare numbers."""
    errors: list[FieldError] = []
    for at, term in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{at}]"
        operator, values = term.get("operator", ""), term.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden_field(f"{where}.values", detail))
        elif operator in comparing:
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{where}.values", detail))
        else:
            errors.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = term.get("key", "")
        errors += [invalid(f"{where}.key", key, problem) for problem in naming.qualified_problems(key)]
    return errors
