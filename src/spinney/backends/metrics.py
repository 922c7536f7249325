"""What backends count."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

SELECTED = Counter("spinney_backend_selected", "Gangs that a backend was chosen for.", ("backend",))
CONVERSIONS = Counter(
    "spinney_backend_conversions", "Gangs translated into a scheduler's objects.", ("backend", "result")
)
ERRORS = Counter("spinney_backend_errors", "Gangs that could not be translated or written.", ("backend", "reason"))
LATENCY = Histogram(
    "spinney_backend_conversion_seconds",
    "From reading a gang to its scheduler's objects being written.",
    ("backend",),
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5),
)
