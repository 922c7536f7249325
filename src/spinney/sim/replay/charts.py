"""Charts of a replay, as SVG: use over time, and waiting times by queue and by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from spinney.sim.replay.engine import Sample
from spinney.sim.replay.results import PolicyResult, Waits

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2")
_WIDTH, _HEIGHT, _MARGIN = 720.0, 260.0, 48.0
# Points of a line: one for each pixel.
_MOST_POINTS = 720


def draw(folder: Path, results: Sequence[PolicyResult], samples: Mapping[str, Sequence[Sample]]) -> list[Path]:
    """Write all charts to a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = {
        "utilisation.svg": _lines(samples),
        "waiting-by-queue.svg": _bars("Mean wait by queue, s", {each.policy: each.by_queue for each in results}),
        "waiting-by-size.svg": _bars("Mean wait by size of job, s", {each.policy: each.by_size for each in results}),
    }
    for name, text in charts.items():
        (folder / name).write_text(text)
    return [folder / name for name in charts]


def _lines(samples: Mapping[str, Sequence[Sample]]) -> str:
    """The part of the capacity that is used, over time, a line for each policy."""
    end = max((each[-1].at + each[-1].seconds for each in samples.values() if each), default=1.0) or 1.0
    shapes = []
    for number, each in enumerate(samples.values()):
        step = max(len(each) // _MOST_POINTS, 1)
        points = " ".join(
            f"{_MARGIN + sample.at / end * (_WIDTH - 2 * _MARGIN):.1f},{_y(sample.used / (sample.capacity or 1.0)):.1f}"
            for sample in each[::step]
        )
        shapes.append(f'<polyline fill="none" stroke="{_colour(number)}" stroke-width="1.5" points="{points}"/>')
    shapes += [_label(_MARGIN - 6, _y(part), f"{part:.0%}", "end") for part in (0.0, 0.5, 1.0)]
    shapes += [_label(_MARGIN, _HEIGHT - 14, "0"), _label(_WIDTH - _MARGIN, _HEIGHT - 14, f"{end:,.0f} s", "end")]
    return _svg("Part of the capacity in use", shapes, list(samples))


def _bars(title: str, waits: Mapping[str, Mapping[str, Waits]]) -> str:
    """A group of bars for each name, a bar in it for each policy."""
    names = list(dict.fromkeys(name for each in waits.values() for name in each))
    highest = max((each.mean for policy in waits.values() for each in policy.values()), default=0.0) or 1.0
    slot = (_WIDTH - 2 * _MARGIN) / max(len(names), 1)
    width = slot * 0.8 / max(len(waits), 1)
    shapes = []
    for place, name in enumerate(names):
        left = _MARGIN + place * slot
        for number, policy in enumerate(waits.values()):
            mean = policy[name].mean if name in policy else 0.0
            top = _y(mean / highest)
            shapes.append(
                f'<rect x="{left + number * width:.1f}" y="{top:.1f}" width="{width:.1f}" '
                f'height="{_y(0.0) - top:.1f}" fill="{_colour(number)}"><title>{mean:,.1f} s</title></rect>'
            )
        shapes.append(_label(left + slot * 0.4, _HEIGHT - 30, name, "middle"))
    shapes.append(_label(_MARGIN - 6, _y(1.0), f"{highest:,.0f}", "end"))
    return _svg(title, shapes, list(waits))


def _svg(title: str, shapes: Sequence[str], policies: Sequence[str]) -> str:
    legend = [
        f'<tspan fill="{_colour(number)}">■</tspan><tspan> {escape(policy)}  </tspan>'
        for number, policy in enumerate(policies)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{_MARGIN:g}" y="18" font-size="13">{escape(title)}</text>'
        f'<line x1="{_MARGIN:g}" y1="{_y(0.0):.1f}" x2="{_WIDTH - _MARGIN:g}" y2="{_y(0.0):.1f}" stroke="#999"/>'
        f"{''.join(shapes)}"
        f'<text x="{_MARGIN:g}" y="{_HEIGHT - 2:g}">{"".join(legend)}</text></svg>\n'
    )


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{escape(text)}</text>'


def _y(part: float) -> float:
    """The height of a part of the whole."""
    return _HEIGHT - _MARGIN - part * (_HEIGHT - 2 * _MARGIN)


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]
