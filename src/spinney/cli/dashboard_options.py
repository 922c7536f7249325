"""The options of commands that serve the dashboard beside a cluster."""

from __future__ import annotations

import click

from spinney.cli.options import bundled
from spinney.web.settings import PORT, DashboardSettings


def _settings(*, serves_dashboard: bool, dashboard_port: int | None) -> DashboardSettings | None:
    if not serves_dashboard:
        return None
    return DashboardSettings(any_port=True) if dashboard_port is None else DashboardSettings(port=dashboard_port)


dashboard_options = bundled(
    "dashboard",
    _settings,
    click.option(
        "--dashboard/--no-dashboard", "serves_dashboard", default=True, help="Serve the dashboard, or not. Default: on."
    ),
    click.option(
        "--dashboard-port",
        type=click.IntRange(0, 65535),
        help=f"Where to serve the dashboard on 127.0.0.1. Default: {PORT}, or a free port if that is taken.",
    ),
)
