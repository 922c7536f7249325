"""Numbers of queues that are no numbers are refused before anything is sent."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from spinney.cli.main import main


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "set", "team", "--quota", "nan"),
        ("queue", "set", "team", "--limit", "inf"),
        ("queue", "set", "team", "--weight", "nan"),
        ("queue", "create", "team", "--cpu-quota=-inf"),
    ],
)
def test_a_quota_of_nan_took_the_quota_away(arguments: tuple[str, ...]) -> None:
    """JSON has neither of them: what was sent was null, which removes the field."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert "not a number" in result.output or "neither a number" in result.output
