"""Warnings of the API server about what a command changes, on the error output as kubectl prints them."""

from __future__ import annotations

import re

import click

from spinney.kube.client.transport import Request, Response, Transport

# RFC 7234: `299 - "text"`, several of them behind each other.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class PrintingWarnings:
    """A transport that prints the warnings that come with the answers to writes."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """The server's response; warnings of reads are not printed, since the user did not choose the API version."""
        response = await self._inner.send(request)
        if request.method != "GET":
            for text in _WARNING.findall(response.headers.get("warning", "")):
                click.echo(f"warning: {text.replace(chr(92), '')}", err=True)
        return response

    async def close(self) -> None:
        """Close connections."""
        await self._inner.close()
