"""What the start of a component imports: every module more delays it, in a container as on a laptop."""

from __future__ import annotations

import sys

import pytest

from tests.worlds import run

# Half a second together, and of no use to most components.
_SLOW = {"rich", "numpy", "cel_expr_python", "jsonschema_rs", "spinney.embedded", "spinney.sim"}
_IMPORT = """
import sys
from spinney.cli.main import main
main.get_command(None, "run")
from spinney.app.components import load
load(sys.argv[1])
print("\\n".join(sys.modules))
"""


@pytest.mark.parametrize(
    ("component", "used"),
    [
        ("grove", set()),
        ("backends", set()),
        ("binder", set()),
        ("queue-controller", set()),
        # Knows the rights of every component, the scheduler's among them.
        ("platform", {"numpy", "cel_expr_python"}),
        ("scheduler", {"numpy", "cel_expr_python"}),
        ("dashboard", {"numpy", "cel_expr_python", "spinney.sim"}),
    ],
)
async def test_start_imports_only_what_is_used(component: str, used: set[str]) -> None:
    """A simulated cluster, terminal colours and number crunching are imported where they are used, and not before."""
    imported = await run(sys.executable, "-c", _IMPORT, component)
    assert imported.code == 0, imported.err
    assert _SLOW & set(imported.out.split()) <= used
