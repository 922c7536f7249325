"""Volcano: one PodGroup per gang, with a subgroup policy per role. Needs Volcano 1.14.4 or later."""

from spinney.backends.volcano.backend import BACKEND

__all__ = ["BACKEND"]
