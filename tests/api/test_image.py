"""Which image our own pods run when nobody names one."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from spinney.api.image import default_image
from spinney.grove.settings import Settings
from spinney.services.nodescale.controller import NodeScaleSettings
from spinney.services.platform.settings import PlatformSettings
from spinney.services.reservation.manifest import ReservationSettings


def _images() -> list[str]:
    return [Settings().init_image, NodeScaleSettings().image, PlatformSettings().image, ReservationSettings().image]


def test_no_image_is_called_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag `latest` is pulled at every start, which fails where the image is only on the node."""
    monkeypatch.delenv("SPINNEY_IMAGE", raising=False)
    assert set(_images()) == {f"localhost/spinney:{version('spinney')}"}


def test_installation_names_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation sets one variable, and every pod that we create runs that image."""
    monkeypatch.setenv("SPINNEY_IMAGE", "registry.example/spinney:1.2.3")
    assert default_image() == "registry.example/spinney:1.2.3"
    assert set(_images()) == {default_image()}
