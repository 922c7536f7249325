"""CEL selectors of device classes and claims: which devices they match, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from spinney.api.meta import Json
from spinney.api.resource import (
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
)
from spinney.cel.expressions import CompileError, EvaluationError, compile_expression
from spinney.cel.functions import quantity_value, semver_value

_DOMAIN = re.compile(r"""\b(?:attributes|capacity)\[["']([^"']+)["']\]""")


class SelectorError(Exception):
    """A selector that does not compile, or that fails on a device; allocation stops, as in kube-scheduler."""


class Selectors(NamedTuple):
    """The selectors of one owner: `class gpu` or `claim default/training`."""

    owner: str
    selectors: Sequence[DeviceSelector]

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Each expression with what it is known by in messages."""
        for number, selector in enumerate(self.selectors):
            if selector.cel is not None:
                yield f"{self.owner}: selector #{number}", selector.cel.expression

    def check(self) -> None:
        """Raise SelectorError for the first expression that does not compile."""
        for name, expression in self.expressions():
            _compile(name, expression)

    def match(self, driver: str, device: Device) -> bool:
        """True if every expression is true of the device."""
        if not self.selectors:
            return True
        try:
            described = _describe(driver, device)
        except ValueError as error:
            raise SelectorError(f"{self.owner}: CEL runtime error: device {device.name}: {error}") from error
        return all(_evaluate(name, expression, described) for name, expression in self.expressions())


def selectors_of_class(device_class: DeviceClass) -> Selectors:
    """The selectors that every device of a class must match."""
    return Selectors(f"class {device_class.name}", device_class.spec.selectors)


def selectors_of_request(claim: ResourceClaim, request: ExactDeviceRequest) -> Selectors:
    """The selectors that a claim adds to those of the class."""
    return Selectors(f"claim {claim.namespace}/{claim.name}", request.selectors)


def _compile(name: str, expression: str) -> Any:
    try:
        program = compile_expression(expression, ("device",))
    except CompileError as error:
        raise SelectorError(f"{name}: CEL compile error: {error.problem}") from error
    if program.result_type not in ("BOOL", "DYN"):
        kind = program.result_type.lower()
        raise SelectorError(f"{name}: CEL compile error: must evaluate to bool or the unknown type, not {kind}")
    return program


def _evaluate(name: str, expression: str, device: Json) -> bool:
    program = _compile(name, expression)
    # Kubernetes reads a domain that a device does not have as an empty map.
    empty: dict[str, Json] = {domain: {} for domain in _domains(expression)}
    attributes, capacity = empty | device["attributes"], empty | device["capacity"]
    try:
        result = program.evaluate({"device": {**device, "attributes": attributes, "capacity": capacity}})
    except EvaluationError as error:
        raise SelectorError(f"{name}: CEL runtime error: {error}") from error
    if not isinstance(result, bool):
        raise SelectorError(f"{name}: CEL runtime error: got {type(result).__name__} instead of bool")
    return result


@lru_cache(maxsize=1024)
def _domains(expression: str) -> frozenset[str]:
    return frozenset(_DOMAIN.findall(expression))


def _describe(driver: str, device: Device) -> Json:
    return {
        "driver": driver,
        "attributes": _by_domain(driver, {name: _value(value) for name, value in device.attributes.items()}),
        "capacity": _by_domain(
            driver, {name: quantity_value(str(value.value)) for name, value in device.capacity.items()}
        ),
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def _by_domain(driver: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Names without a domain belong to the driver's own."""
    by_domain: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, _, short = name.rpartition("/")
        by_domain.setdefault(domain or driver, {})[short] = value
    return by_domain


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        return semver_value(attribute.version)
    return plain_value(attribute)


def plain_value(attribute: DeviceAttribute) -> Any:
    """The value of an attribute, whatever its type."""
    values = (attribute.string, attribute.int_, attribute.bool_, attribute.version)
    return next((value for value in values if value is not None), None)
