"""Compile CEL expressions over declared variables, and evaluate them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from spinney.cel import costs
from spinney.cel.functions import FUNCTIONS, expand_format_validation

_T = cel.Type
_NO_SELECTION = re.compile(r"expression of type '(\w+)' cannot be the operand of a select operation")
_NO_KEY = re.compile(r'NOT_FOUND: Key not found in map : "?(.*?)"?$')
_OUT_OF_BUDGET = "the expression runs out of its cost budget"


class CompileError(Exception):
    """An expression that does not compile; the text points at the place, as Kubernetes writes it."""

    @property
    def problem(self) -> str:
        """What is wrong, without the place."""
        return re.sub(r"^ERROR: <input>:\d+:\d+: ", "", str(self).partition("\n")[0])


class EvaluationError(Exception):
    """An expression that failed on the values it was given."""

    def __init__(self, message: str, missing_key: str = "") -> None:
        super().__init__(message)
        self.missing_key = missing_key


class OutOfBudgetError(EvaluationError):
    """An expression that would take too long."""


class Program:
    """A compiled expression."""

    __slots__ = ("_expression", "_text", "result_type")

    def __init__(self, expression: Any, text: str) -> None:
        self._expression = expression
        self._text = text
        # CEL's name of the type, such as `BOOL`, or `DYN` where it depends on the values.
        self.result_type = str(expression.return_type())

    def evaluate(self, values: Mapping[str, Any], budget: costs.Budget | None = None) -> Any:
        """Return the expression's value; `values` holds every declared variable. Its cost is taken off the budget."""
        try:
            costs.check(self._text, values, budget)
        except costs.OutOfBudget:
            raise OutOfBudgetError(_OUT_OF_BUDGET) from None
        try:
            result = self._expression.eval(data=dict(values))
        except RuntimeError as error:
            # The engine stops loops by a count of steps.
            raise _evaluation_error(str(error)) from None
        if result.type() == _T.ERROR:
            raise _evaluation_error(str(result.value()))
        return result.plain_value()


@lru_cache(maxsize=4096)
def compile_expression(text: str, variables: tuple[str, ...]) -> Program:
    """Compile an expression over these variables, each of which can be anything."""
    if len(text) > costs.LONGEST_EXPRESSION:
        raise CompileError(
            f"expression code point size exceeds limit: size: {len(text)}, limit {costs.LONGEST_EXPRESSION}"
        )
    try:
        return Program(_environment(variables).compile(expand_format_validation(text)), text)
    except RuntimeError as error:
        raise _compile_error(str(error)) from None


def evaluate(text: str, values: Mapping[str, Any], budget: costs.Budget | None = None) -> Any:
    """Compile an expression over the names of these values, and evaluate it."""
    return compile_expression(text, tuple(values)).evaluate(values, budget)


@lru_cache(maxsize=64)
def _environment(variables: tuple[str, ...]) -> Any:
    return cel.NewEnv(
        variables=dict.fromkeys(variables, _T.DYN),
        extensions=[
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ],
        functions=FUNCTIONS,
    )


def _compile_error(message: str) -> CompileError:
    message = message.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    return CompileError(_NO_SELECTION.sub(r"type '\1' does not support field selection", message))


def _evaluation_error(message: str) -> EvaluationError:
    """The engine's run-time error in Kubernetes' words."""
    missing = _NO_KEY.match(message)
    if missing:
        return EvaluationError(f"no such key: {missing[1]}", missing[1])
    if "No matching overloads" in message:
        return EvaluationError("no such overload")
    if "Iteration budget exceeded" in message:
        return OutOfBudgetError(_OUT_OF_BUDGET)
    message = message.replace("divide by zero", "division by zero")
    return EvaluationError(message.partition(": ")[2] or message)
