"""The files of the page: read once, served with a tag that changes with their content."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import web

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """One file, ready to be sent."""

    content: bytes
    packed: bytes
    content_type: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Every file by its path below the folder."""
    return {
        path.relative_to(_FOLDER).as_posix(): _page_file(path)
        for path in sorted(_FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }


def respond(request: web.Request, name: str) -> web.Response:
    """The file of a name, or 304 where the browser has it."""
    file = page_files().get(name)
    if file is None:
        raise web.HTTPNotFound(text="no such file\n")
    headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == file.tag:
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=file.packed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=file.content, headers=headers)


def _page_file(path: Path) -> PageFile:
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    return PageFile(content, gzip.compress(content, 6, mtime=0), _TYPES[path.suffix], tag)
