"""The contract's sequence with the real kubectl, on a laptop (on a real cluster: `test_backends_kube_scheduler`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from spinney.app.laptop import Options, laptop
from spinney.embedded.nodes.profile import Profile
from tests.e2e.sequence import RESOURCES, Shell, apply_get_patch_delete


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A cluster with everything in it, and the way into it."""
    kubeconfig = tmp_path / "kubeconfig"
    options = Options(nodes=Profile(count=4, racks=2), port=0, kubeconfig=kubeconfig)
    async with laptop(options):
        yield Shell(kubeconfig)


@pytest.mark.parametrize("backend", RESOURCES)
async def test_apply_get_patch_delete(shell: Shell, backend: str) -> None:
    """From apply to Running, scaled from 2 to 3, deleted; the backend's objects come and go with the gangs."""
    await apply_get_patch_delete(shell, backend)
