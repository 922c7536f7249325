"""The image of Spinney's own containers: components, init containers, reservation and scaling pods."""

from __future__ import annotations

import os
from importlib.metadata import version

# What `make image` calls it; a published image has another name, which the installation sets in the environment.
REPOSITORY = "localhost/spinney"
VARIABLE = "SPINNEY_IMAGE"


def default_image() -> str:
    """The image that this process was installed with: `SPINNEY_IMAGE`, else the local one of its version."""
    return os.environ.get(VARIABLE) or f"{REPOSITORY}:{version('spinney')}"
