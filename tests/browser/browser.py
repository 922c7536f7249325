"""A Chromium for tests: from the system, with a fresh profile, and with every error it reports kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page

from spinney.testing import browser as system
from tests import data


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A running browser; skips where there is none, fails where it is required."""
    path = system.find_chromium()
    if path is None:
        data.unavailable("browser", "no Chromium on this machine: install Debian's package `chromium`")
    assert path is not None
    async with system.launched(path) as browser:
        yield browser


class Visit:
    """One page in a profile of its own, and what went wrong on it."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        self.errors: list[str] = []
        self._link = link.rstrip("/")
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url: str) -> None:
        if not url.startswith((self._link, "data:", "blob:")):
            self.errors.append(f"a request to {url}")

    async def to(self, path: str) -> Page:
        """Open an address and wait until it follows the cluster."""
        await self.page.goto(f"{self._link}{path}")
        await self.page.wait_for_selector(".live.is-live, .live.is-past, .login")
        return self.page


@asynccontextmanager
async def visiting(browser: Browser, link: str, *, dark: bool = False, width: int = 1360) -> AsyncIterator[Visit]:
    """A visit to a dashboard; at its end nothing may have gone wrong."""
    scheme = "dark" if dark else "light"
    context = await browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
    try:
        visit = Visit(await context.new_page(), link)
        yield visit
        assert not visit.errors, visit.errors
    finally:
        await context.close()
