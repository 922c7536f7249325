"""A Chromium of this system, driven by Playwright: for tests, pictures and measurements of the dashboard."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox: containers do not allow one, and only our own pages are opened. Nothing is asked of the internet.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Where the browser is, if there is one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@asynccontextmanager
async def launched(path: str, *flags: str) -> AsyncIterator[Browser]:
    """A running browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            await browser.close()
