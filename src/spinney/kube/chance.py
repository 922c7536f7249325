"""The one source of chance: UIDs, name suffixes, jitter. Seeded, it repeats itself."""

from __future__ import annotations

import random
import uuid

# The letters Kubernetes uses for generated names: no vowels and no look-alikes, so no words come out.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Chance:
    """Random numbers from one seed; without a seed, from the machine."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A UUID, version 4."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """What the API server appends to `generateName`."""
        return "".join(self._random.choices(_SUFFIX_LETTERS, k=length))

    def jitter(self, value: float, share: float = 0.1) -> float:
        """The value, made up to `share` longer."""
        return value * (1.0 + share * self._random.random())

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
