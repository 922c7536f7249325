"""Colours of queues and workloads, seen with every kind of colour vision."""

from __future__ import annotations

import math
import re
from itertools import combinations

import pytest

from spinney.web.files import page_files

# What a colour becomes for who lacks one kind of cone, in linear RGB (Machado, Oliveira and Fernandes 2009).
VISIONS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
# Distances in CIELAB: about 2 is just seen side by side, 10 at a glance.
AT_A_GLANCE = 15.0


def palette(name: str) -> list[str]:
    """The colours of a theme, as the page has them."""
    source = page_files()["lib/colours.js"].content.decode()
    match = re.search(rf"const {name} = \[(.*?)\]", source)
    assert match is not None
    return re.findall(r"#[0-9a-f]{6}", match[1])


def seen(colour: str, vision: str) -> tuple[float, float, float]:
    """A colour in CIELAB, as it is seen."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    red, green, blue = (
        min(max(sum(a * b for a, b in zip(row, linear, strict=True)), 0.0), 1.0) for row in VISIONS[vision]
    )
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_no_two_queues_look_alike(theme: str, vision: str) -> None:
    """Every pair of colours can be told apart at a glance."""
    colours = palette(theme)
    assert len(colours) >= 8
    close = [
        (colour, other)
        for colour, other in combinations(colours, 2)
        if math.dist(seen(colour, vision), seen(other, vision)) < AT_A_GLANCE
    ]
    assert close == []
