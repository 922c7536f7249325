"""CEL expressions: what compiles, what they evaluate to, and how they fail."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, EvaluationError, OutOfBudgetError, compile_expression, evaluate
from spinney.cel.functions import quantity_value, semver_value

DEVICE: Json = {
    "driver": "gpu.example.com",
    "attributes": {"gpu.example.com": {"model": "H100", "driverVersion": semver_value("550.54.15")}},
    "capacity": {"gpu.example.com": {"memory": quantity_value("80Gi")}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model.lowerAscii() == "h100"', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example.com"].memory == quantity("81920Mi")', True),
        ('device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("550.100.0"))', True),
        ('has(device.attributes["gpu.example.com"].model)', True),
        ('device.attributes["gpu.example.com"].model.startsWith("A")', False),
    ],
)
def test_device_selectors(text: str, value: Any) -> None:
    """Selectors of devices see the driver, attributes and capacity, with Kubernetes' functions."""
    program = compile_expression(text, ("device",))
    assert program.result_type == "BOOL"
    assert program.evaluate({"device": DEVICE}) is value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("device.driver ==", "Syntax error: mismatched input"),
        ("node.name == 'a'", "undeclared reference to 'node"),
        ("1 > 'a'", "found no matching overload for '_>_'"),
    ],
)
def test_compile_errors(text: str, problem: str) -> None:
    """An expression that does not compile says what is wrong and where."""
    with pytest.raises(CompileError) as caught:
        compile_expression(text, ("device",))
    assert str(caught.value).startswith("ERROR: <input>:1:")
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("text", "message", "missing_key"),
    [
        ("self.b", "no such key: b", "b"),
        ("1 / self.a", "division by zero", ""),
        ("self.a.startsWith('a')", "no such overload", ""),
    ],
)
def test_evaluation_errors(text: str, message: str, missing_key: str) -> None:
    """An expression that fails on its values says so in Kubernetes' words."""
    with pytest.raises(EvaluationError, match=message) as caught:
        evaluate(text, {"self": {"a": 0}})
    assert caught.value.missing_key == missing_key


@pytest.mark.parametrize(
    "call", ["find('^(a+)+$') == ''", "findAll('^(a+)+$').size() == 0", "matches('^(a+)+$') == false"]
)
def test_an_expression_that_froze_the_process(call: str) -> None:
    """Regular expressions in CEL need time linear in the text, whatever the expression."""
    assert evaluate(f"self.text.{call}", {"self": {"text": "a" * 5000 + "!"}}) is True


def test_find_all_counts_as_go_does() -> None:
    """An empty match right after another one does not count."""
    assert evaluate("self.text.findAll('a*') == ['', 'aa', '']", {"self": {"text": "baac"}}) is True


AB = "ab" * 50_000


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("s.matches('^(a|b)*a(a|b){200}c$')", {"s": AB}),
        ("s.findAll('(a|b)*c|a').size() > 0", {"s": AB}),
        ("s.matches(s)", {"s": AB[:10_000]}),
        ("l.all(x, s.find('(a|b)*c|a') == '')", {"s": AB, "l": list(range(3000))}),
        ("l.map(x, s + s + s).size() > 0", {"s": AB, "l": list(range(3000))}),
        ("l.map(x, l.map(y, x)).size() > 0", {"l": list(range(3000))}),
        ("l.all(x, l.all(y, l.all(z, x + y + z >= 0)))", {"l": list(range(3000))}),
        (f"s.replace('a', '{'a' * 99}').replace('a', '{'a' * 99}') == ''", {"s": AB}),
        ("sets.contains(l, l)", {"l": list(range(20_000))}),
        ("l.all(x, s + s + s != '')", {"s": AB, "l": list(range(3000))}),
        ("l.all(x, l == m)", {"l": list(range(8000)), "m": list(range(8000))}),
        ("m.a.all(x, m.b == s)", {"m": {"a": list(range(10_000)), "b": AB * 10}, "s": AB * 10}),
    ],
)
def test_an_expression_that_stopped_the_process(text: str, values: Json) -> None:
    """What it would cost with these values is estimated before it begins; the engine counts only iterations."""
    with pytest.raises(OutOfBudgetError, match="runs out of its cost budget"):
        evaluate(text, values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("l.all(x, x.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))", {"l": ["a" * 63] * 1000}),
        ("l.all(x, l.exists_one(y, y == x))", {"l": list(range(60))}),
        ("s.replace('a', 'b').startsWith('b')", {"s": AB}),
        ("l.map(x, x * 2).size() == 500", {"l": list(range(500))}),
        ("sets.equivalent(l, l)", {"l": list(range(500))}),
        ("s == s", {"s": AB}),
        ("m.l.all(x, m.l.exists(y, y == x))", {"m": {"l": list(range(60)), "s": AB, "other": list(range(9000))}}),
        ("[optional.of((n))].map(o, o.hasValue() || m.l.all(x, x > 0))[0]", {"n": {"s": AB}, "m": {"l": [1]}}),
    ],
)
def test_expressions_of_everyday_size(text: str, values: Json) -> None:
    """None of them comes near the limit."""
    assert evaluate(text, values) is True


def test_an_expression_of_thousands_of_operators() -> None:
    """Compiling it took longer than anybody waits."""
    with pytest.raises(CompileError, match="exceeds limit"):
        compile_expression(" || ".join(["true"] * 5000), ())
