"""The one source of chance: UIDs, name suffixes, jitter. Seeded, it repeats itself."""

from __future__ import annotations

import random

# The letters Kubernetes uses for generated names: no vowels and no look-alikes, so no words come out.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Chance:
    """Random numbers from one seed; without a seed, from the machine."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A UUID, version 4."""
        # What uuid.UUID writes, without making one: every object that is created asks.
        bits = self._random.getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48) | (4 << 76) | (0x8000 << 48)
        digits = f"{bits:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def suffix(self, length: int = 5) -> str:
        """What the API server appends to `generateName`."""
        return "".join(self._random.choices(_SUFFIX_LETTERS, k=length))

    def jitter(self, value: float, share: float = 0.1) -> float:
        """The value, made up to `share` longer."""
        return value * (1.0 + share * self._random.random())

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
