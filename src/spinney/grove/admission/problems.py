"""Problems of an object in Kubernetes' format: the field, its value, and the remedy."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One field that must change."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(slots=True)
class Problems:
    """Every problem of one review, so that a user can repair them all at once; warnings refuse nothing."""

    errors: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def invalid(self, path: str, value: object, remedy: str) -> None:
        """A value that is not acceptable."""
        self.errors.append(Problem(path, f"Invalid value: {_show(value)}: {remedy}"))

    def required(self, path: str, remedy: str) -> None:
        """A field that must be there."""
        self.errors.append(Problem(path, f"Required value: {remedy}"))

    def duplicate(self, path: str, value: object, remedy: str) -> None:
        """A value that may occur only once."""
        self.errors.append(Problem(path, f"Duplicate value: {_show(value)}: {remedy}"))

    def forbidden(self, path: str, remedy: str) -> None:
        """A field that must not be there, or must not change."""
        self.errors.append(Problem(path, f"Forbidden: {remedy}"))

    def unsupported(self, path: str, value: object, allowed: Iterable[str]) -> None:
        """A value outside its list."""
        names = ", ".join(f'"{name}"' for name in sorted(allowed))
        self.errors.append(Problem(path, f"Unsupported value: {_show(value)}: supported values: {names}"))

    def unchanged(self, path: str, old: object, new: object, remedy: str) -> None:
        """A field that keeps its first value."""
        if old != new:
            self.invalid(path, new, f"field is immutable; {remedy}")

    def __bool__(self) -> bool:
        return bool(self.errors)

    def text(self) -> str:
        """All problems in one line, as Kubernetes joins them."""
        lines = list(dict.fromkeys(str(problem) for problem in self.errors))
        return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"


def _show(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."
