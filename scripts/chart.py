"""Write the Helm chart in deploy/chart."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from spinney.app.install.chart import write_chart

write_chart(Path(__file__).parent.parent / "deploy" / "chart", version("spinney"))
