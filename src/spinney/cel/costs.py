"""What the evaluation of a CEL expression may cost: an estimate from its text and its values, before it begins.

The engine counts iterations, and nothing else: one of them may match an expression against a megabyte. A step is about
what a regular expression does with one character in one of its states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spinney.api import patterns

LONGEST_EXPRESSION = 16_384
# About half a second.
MOST_STEPS = 20_000_000
# Where the engine itself stops.
_ITERATIONS = 10_000
_STEPS_OF_A_COPY = 4
# To begin an evaluation costs as much as so many steps.
_START = 5_000
_LITERAL = re.compile(r"""r?"[^"\\]*(?:\\.[^"\\]*)*"|r?'[^'\\]*(?:\\.[^'\\]*)*'""")
_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap)\s*\(")
_COPYING = re.compile(r"\.\s*(?:map|filter|transformList|transformMap|flatten|join)\s*\(")
_REGEX = re.compile(r"\bmatches\s*\(|\.\s*find(?:All)?\s*\(")
_EVERY = re.compile(r"\.\s*findAll\s*\(")
_GROWING = re.compile(r"\.\s*replace\s*\(")
# A variable that is bound to another name by a list of one element, which is no loop.
_BINDING = re.compile(r"^\[(?:optional\.none\(\)|(?:(?:optional\.of|\w+)?\()*(\w+)\)*)\]\.map\((\w+), ")
# A variable, and the fields that are selected of it before a function is called or the text goes on otherwise.
_USE = re.compile(r"(?<![\w.?])([A-Za-z_]\w*)(?!\w)((?:\.[A-Za-z_]\w*(?![\w(]|\s*\())*)(?!\.hasValue\(\))")
_COMPARING = re.compile(r"==|!=|\bin\b")
_CALL = re.compile(r"\b(\w+)\s*\(")
# Functions that do not look at every character of a text.
_LIGHT = frozenset(
    ("all", "exists", "exists_one", "existsOne", "map", "filter", "has", "size", "hasValue", "value", "orValue", "of")
)
# To compare two texts takes a step for so many characters.
_COMPARED = 256

_Path = tuple[str, ...]


class OutOfBudget(Exception):
    """The evaluation would take too long."""


class Budget:
    """What all evaluations for one object may cost together."""

    def __init__(self, steps: int = 50_000_000) -> None:
        self._left = steps

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self._left < 0

    def spend(self, steps: int) -> None:
        """Take off the cost of one evaluation."""
        self._left -= steps
        if self._left < 0:
            raise OutOfBudget


@dataclass(frozen=True)
class _Shape:
    """What the text of an expression says about its cost."""

    macros: int
    copies: bool
    # Whether each element of a list is compared with each of another one.
    pairs: bool
    # States of its largest regular expression; None if one comes from a value, and 1 if there are none.
    states: int | None
    finds_every: bool
    growth: int
    longest_literal: int
    # Whether texts are compared and nothing else is done with them.
    light: bool
    # Whether collections are compared or searched.
    compares: bool
    # The parts of variables that it can see.
    seen: frozenset[tuple[str, _Path]]


@lru_cache(maxsize=4096)
def _shape(text: str) -> _Shape:
    text, variables = _unbound(text)
    literals = [literal.strip("r\"'") for literal in _LITERAL.findall(text)]
    bare = _LITERAL.sub('""', text)
    longest = max(map(len, literals), default=0)
    states: int | None = 1
    if _REGEX.search(bare):
        states = max((patterns.states(literal) for literal in literals), default=None)
    return _Shape(
        macros=len(_MACRO.findall(bare)),
        copies=bool(_COPYING.search(bare)),
        pairs="sets." in bare,
        states=states,
        finds_every=bool(_EVERY.search(bare)),
        growth=max(longest, 1) ** len(_GROWING.findall(bare)),
        longest_literal=longest,
        light="+" not in bare and _LIGHT.issuperset(_CALL.findall(bare)),
        compares=bool(_COMPARING.search(bare)),
        seen=frozenset(
            (variables.get(name, name), tuple(path.split(".")[1:]))
            for name, path in _USE.findall(bare)
            if variables.get(name, name)
        ),
    )


def _unbound(text: str) -> tuple[str, dict[str, str]]:
    """The text after its bindings, and what each bound name stands for; empty where it has no value."""
    variables: dict[str, str] = {}
    while binding := _BINDING.match(text):
        variables[binding[2]] = binding[1] or ""
        text = text[binding.end() :]
    return text, variables


def steps(text: str, values: Mapping[str, Any]) -> int:
    """An upper limit of the steps of an evaluation."""
    shape = _shape(text)
    if not shape.macros and not shape.pairs and shape.states == 1 and shape.growth == 1:
        return _START
    longest, largest = _sizes([_selected(values.get(name), path) for name, path in shape.seen])
    length = max(longest, shape.longest_literal, 1) * shape.growth
    iterations = min(_ITERATIONS, int(max(largest, 1) ** min(shape.macros, 4)))
    states = length if shape.states is None else shape.states
    if shape.light and shape.growth == 1:
        length = 1 + length // _COMPARED
    work = length * states * (1 + length // 100 if shape.finds_every else 1)
    if shape.copies:
        work = max(work, _STEPS_OF_A_COPY * largest)
    elif shape.compares:
        work = max(work, largest)
    return _START + iterations * max(work, largest**2 if shape.pairs else 1)


def check(text: str, values: Mapping[str, Any], budget: Budget | None) -> None:
    """Raise OutOfBudget if an evaluation costs more than one may, or than is left."""
    cost = steps(text, values)
    if cost > MOST_STEPS:
        raise OutOfBudget
    if budget is not None:
        budget.spend(cost)


def _selected(value: Any, path: _Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _sizes(waiting: list[Any]) -> tuple[int, int]:
    """The lengths of the longest text and of the largest collection in some values."""
    longest = largest = 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            longest = max(longest, len(value))
        elif isinstance(value, dict | list):
            largest = max(largest, len(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return longest, largest
