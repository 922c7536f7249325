"""Documents and texts, changed at random from a seed into what nobody expects."""

from __future__ import annotations

import random  # noqa: TID251  # seeded, and drawn from a hundred times for one input
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

TEXTS = (
    *("", " ", "0", "-1", "1e-400", "1e400", "1e999999999", "0.5\n", "NaN", "Infinity", "-Infinity", "²", "٣", "0x1f"),
    *(
        "9" * 30,
        "9" * 5000,
        "1" + ":1" * 300,
        "a" * 5000,
        "\x00",
        "😀",
        "%s%n",
        "../../x",
        "null",
        "true",
        "-",
    ),
    *("100%", "9" * 30 + "%", "1h" * 99, "-5s", "2026-99-99T99:99:99Z", "a/b/c", "a,b=c", "(a+)+$", "[", "{}", "$(A)"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 1.5, -0.0, 1e-320, 1e308),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": {"b": []}}, ["a"] * 50, {f"k{n}": n for n in range(50)}),
    *TEXTS,
)

_PARTS = (b"", b"{", b"[" * 500, b"\x00", b"\xff", b"- ", b": ", b"&a ", b"*a", b"!!set ", b"9" * 400)


class Tape(random.Random):
    """Draws from a tape as far as it goes, then from a seed; what was drawn is the tape of this input."""

    def __init__(self, seed: int, tape: Sequence[float] = ()) -> None:
        super().__init__(seed)
        self._given = tape
        self.drawn: list[float] = []

    def random(self) -> float:
        """All other draws come from this one."""
        at = len(self.drawn)
        self.drawn.append(self._given[at] if at < len(self._given) else super().random())
        return self.drawn[-1]


class Mutator:
    """Changes documents; the same seed and tape make the same changes."""

    def __init__(self, seed: int, tape: Sequence[float] = ()) -> None:
        self._random = Tape(seed, tape)

    @property
    def drawn(self) -> list[float]:
        """What decided about this input."""
        return self._random.drawn

    def choice(self, options: Sequence[T]) -> T:
        """One of some options."""
        return self._random.choice(options)

    def chance(self, share: float) -> bool:
        """True in a share of all cases."""
        return self._random.random() < share

    def document(self, document: Any) -> Any:
        """A document with one to four changes."""
        changed = msgspec.json.decode(msgspec.json.encode(document))
        for _ in range(self._random.randint(1, 4)):
            changed = self._changed(changed)
        return changed

    def _changed(self, document: Any) -> Any:
        places = [(None, None), *_places(document)]
        parent, key = self.choice(places)
        if parent is None:
            return document if self.chance(0.9) else self._value()
        match self._random.randrange(6):
            case 0 | 1 | 2:
                parent[key] = self._value()
            case 3:
                del parent[key]
            case 4:
                other, there = self.choice(places[1:])
                parent[key] = msgspec.json.decode(msgspec.json.encode(other[there]))
            case _:
                for _ in range(self.choice((1, 5, 200))):
                    parent[key] = [parent[key]] if self.chance(0.5) else {"a": parent[key]}
        return document

    def _value(self) -> Any:
        """A copy: a value that stands in two places could come to contain itself."""
        return deepcopy(self.choice(VALUES))

    def text(self, text: bytes) -> bytes:
        """A text with some bytes cut out, repeated, replaced or put in."""
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(text) + 1)
            end = min(len(text), at + self.choice((1, 2, 10, 100)))
            part = self.choice(_PARTS)
            match self._random.randrange(3):
                case 0:
                    text = text[:at] + part + text[end:]
                case 1:
                    text = text[:at] + text[at:end] * self.choice((2, 50)) + text[end:]
                case _:
                    text = text[:at]
        return text


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document where something can be put: a container, and a key or index."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        each = waiting.pop()
        pairs = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, value in pairs:
            places.append((each, key))
            waiting.append(value)
    return places
