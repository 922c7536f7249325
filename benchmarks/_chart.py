"""Bars, a panel per thing that was measured, with the aim as a line where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """What was measured: a bar per name, and for some names an aim."""

    title: str
    values: Mapping[str, float]
    aims: Mapping[str, float] = field(default_factory=dict)


def bars(file: Path, panels: Sequence[Panel]) -> None:
    """Draw panels side by side."""
    figure = Figure(figsize=(3.4 * len(panels), 3.4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        drawn = axes.bar(list(panel.values), list(panel.values.values()), color="#4c78a8")
        axes.bar_label(drawn, fmt="{:,.3g}", fontsize=8)
        for place, name in enumerate(panel.values):
            if name in panel.aims:
                axes.hlines(panel.aims[name], place - 0.45, place + 0.45, colors="#e45756", label="aim")
        axes.set_title(panel.title, fontsize=9)
        axes.tick_params(labelsize=8)
    figure.savefig(file, dpi=120)


def rows(file: Path, panels: Sequence[Panel]) -> None:
    """Draw panels of horizontal bars side by side, the names once; the same values give the same file."""
    with rc_context({"svg.hashsalt": file.stem, "svg.fonttype": "none"}):
        height = 1.0 + 0.32 * max(len(panel.values) for panel in panels)
        figure = Figure(figsize=(2.0 + 3.4 * len(panels), height), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
            drawn = axes.barh(list(panel.values), list(panel.values.values()), color="#4c78a8")
            axes.bar_label(drawn, fmt="{:,.3g}", fontsize=8, padding=2)
            axes.margins(x=0.15)
            axes.set_title(panel.title, fontsize=9)
            axes.tick_params(labelsize=8)
        figure.axes[0].invert_yaxis()
        figure.savefig(file, metadata={"Date": None})
