"""Coverage-guided inputs: a tape of draws that reached something new is kept, and others are made from it."""

from __future__ import annotations

import random  # noqa: TID251  # seeded: a run is repeatable
from collections.abc import Sequence

_FRESH = 0.25
_MOST_CHANGES = 4


class Corpus:
    """The tapes of one target that reached something new."""

    def __init__(self) -> None:
        self.tapes: list[list[float]] = []

    def next_tape(self, seed: int) -> Sequence[float]:
        """A new tape: nothing given, or one of the corpus with some draws changed, cut off, or joined to another."""
        dice = random.Random(seed)
        if not self.tapes or dice.random() < _FRESH:
            return ()
        # What was found last is the least explored.
        tape = list(self.tapes[-1 - int(len(self.tapes) * dice.random() ** 2)])
        at = dice.randrange(len(tape) + 1)
        match dice.randrange(3):
            case 0:
                return tape[:at]
            case 1:
                other = dice.choice(self.tapes)
                return tape[:at] + other[min(at, len(other)) :]
            case _:
                for _ in range(dice.randint(1, _MOST_CHANGES) if tape else 0):
                    tape[dice.randrange(len(tape))] = dice.random()
                return tape

    def keep(self, tape: list[float]) -> None:
        """Add a tape that reached something new."""
        self.tapes.append(tape)
