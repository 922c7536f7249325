"""CEL as Kubernetes speaks it: expressions compiled, checked for types, and evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from spinney.api.meta import Json
from spinney.cel.functions import FUNCTIONS, with_problems

_T = cel.Type
_SCALARS = {"integer": _T.INT, "string": _T.STRING, "boolean": _T.BOOL}
_KINDS = ("integer", "string", "boolean", "array", "object")
_COLLECTIONS = tuple(f"{kind} {inner}" for kind in _KINDS[3:] for inner in _KINDS[:3])
# The first letter of a variable that stands in for a field, by the field's type.
_LETTERS = dict(zip((*_KINDS, *_COLLECTIONS), "isbaoABCMNO", strict=True))
_LONGEST = 60
_OPERATOR = re.compile(r"found no matching overload for '[^\w']*_[^\w']*_?' applied to '(.*)'")


_SELECTED = re.compile(r"expression of type '(\w+)' cannot be the operand of a select operation")


_QUALIFIED = re.compile(
    r"ERROR: <input>:(?P<line>\d+):(?P<column>\d+): undeclared reference to '(?P<first>\w+)(?P<rest>(?:\.\w+)+)' "
    r"\(in container ''\)\n \| (?P<text>.*)\n \| \.*\^"
)


class BadRule(Exception):
    """A rule that does not compile."""


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
        functions=FUNCTIONS,
    )


@lru_cache(maxsize=4096)
def program(text: str, names: tuple[str, ...]) -> Any:
    """A compiled expression over these variables."""
    try:
        return _environment(names).compile(with_problems(text))
    except RuntimeError as error:
        raise BadRule(_compile_error(error)) from None


def _compile_error(error: RuntimeError) -> str:
    told = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    told = _QUALIFIED.sub(_first_name, told)
    return _SELECTED.sub(r"type '\1' does not support field selection", told)


def _first_name(found: re.Match[str]) -> str:
    """Of `a.b`, which is not there, Kubernetes names `a`, and points to it."""
    line, column, first, rest, text = found["line"], int(found["column"]), found["first"], found["rest"], found["text"]
    start = column - 1 - len(first) - len(rest.rpartition(".")[0])
    told = f"ERROR: <input>:{line}:{start + 1}: undeclared reference to '{first}' (in container '')"
    return f"{told}\n | {text}\n | {'.' * start}^"


def checked(text: str, schema: Json) -> str:
    """The type that a rule over a value of this schema evaluates to; raises where the rule does not compile."""
    kind = str(program(text, ("self", "oldSelf")).return_type())
    typed = {"integer": _T.INT, "string": _T.STRING, "boolean": _T.BOOL}.get(schema.get("type", ""))
    if typed is None or schema.get("format") or schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        return kind
    entries = schema["x-kubernetes-validations"]
    if any(e.get("optionalOldSelf") and text in (e.get("rule"), e.get("messageExpression")) for e in entries):
        return kind
    try:
        return str(_typed_environment(schema["type"]).compile(with_problems(text)).return_type())
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


_OTHER_WORDS = {"divide by zero": "division by zero"}


def _told(message: str) -> str:
    """A run-time error as Kubernetes' own engine puts it."""
    missing = re.match(r'NOT_FOUND: Key not found in map : "?(.*?)"?$', message)
    if missing:
        return f"no such key: {missing[1]}"
    if "No matching overloads" in message:
        return "no such overload"
    for engine, kubernetes in _OTHER_WORDS.items():
        message = message.replace(engine, kubernetes)
    return message.partition(": ")[2] or message
