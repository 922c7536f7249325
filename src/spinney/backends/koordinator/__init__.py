"""Koordinator: one PodGroup per role; an annotation on all of them makes them one gang group."""

from spinney.backends.koordinator.backend import BACKEND

__all__ = ["BACKEND"]
