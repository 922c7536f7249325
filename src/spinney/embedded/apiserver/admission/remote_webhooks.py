"""Webhooks outside this process, called over HTTPS."""

from __future__ import annotations

import base64
import ssl

import aiohttp

from spinney.api.meta import Json
from spinney.embedded.apiserver.admission.webhooks import Reviewer, address

# A patch may replace everything in the largest object.
_MOST_ANSWER = 8 * 1024 * 1024


def over_https(client: Json) -> Reviewer:
    """A function that calls the webhook of a clientConfig."""
    service, url = client.get("service") or {}, address(client)
    name = f"{service.get('name')}.{service.get('namespace')}.svc" if service else None

    async def review(body: bytes) -> bytes:
        context = ssl.create_default_context()
        if client.get("caBundle"):
            context = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
        # What it sends is read as it is, from where it was asked for.
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        try:
            async with (
                aiohttp.ClientSession(auto_decompress=False) as session,
                session.post(
                    url, data=body, ssl=context, headers=headers, server_hostname=name, allow_redirects=False
                ) as response,
            ):
                text = await _bounded(response.content, url)
                if response.status != 200:
                    shown = text.decode("utf-8", "replace")
                    raise OSError(f'Post "{url}": the answer has status {response.status}: {shown}')
                return text
        except aiohttp.ClientError as error:
            raise OSError(f'Post "{url}": {error}') from None

    return review


async def _bounded(content: aiohttp.StreamReader, url: str) -> bytes:
    """All that a webhook answers, unless that is more than any review has."""
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if size > _MOST_ANSWER:
            raise OSError(f'Post "{url}": the answer has more than {_MOST_ANSWER} bytes')
        parts.append(part)
    return b"".join(parts)
