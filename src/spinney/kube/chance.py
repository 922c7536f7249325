"""The only source of randomness: UIDs, name suffixes, jitter. With a seed it is repeatable."""

from __future__ import annotations

import random

# The letters Kubernetes uses for generated names: no vowels and no look-alikes, so no words come out.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
# A letter for every byte that can be drawn; some letters are slightly more frequent, which is harmless.
_LETTER_OF_BYTE = bytes(ord(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)]) for byte in range(256))
# The first digit of a UUID's fourth group says that it is random: two of its bits are fixed.
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


class Chance:
    """Random numbers from one seed; without a seed, from the machine."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A UUID, version 4."""
        # What uuid.UUID writes, without making one: every object that is created asks.
        drawn = f"{self._random.getrandbits(124):031x}"
        return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[12:15]}-{_VARIANT[drawn[30]]}{drawn[15:18]}-{drawn[18:30]}"

    def suffix(self, length: int = 5) -> str:
        """A name suffix as the API server appends it to `generateName`."""
        return self._random.randbytes(length).translate(_LETTER_OF_BYTE).decode()

    def jitter(self, value: float, share: float) -> float:
        """The value, increased by up to `share` of it at random."""
        return value * (1.0 + share * self._random.random())

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
