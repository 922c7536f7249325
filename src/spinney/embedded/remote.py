"""Webhooks outside this process, called over HTTPS."""

from __future__ import annotations

import base64
import ssl

import aiohttp

from spinney.api.meta import Json
from spinney.embedded.admission import Reviewer


def over_https(client: Json) -> Reviewer:
    """What calls the webhook of a clientConfig. A service is looked for on loopback, where everything of ours runs."""
    service = client.get("service") or {}
    url = client.get("url") or f"https://127.0.0.1:{service.get('port', 443)}{service.get('path', '/')}"
    url += f"{'&' if '?' in url else '?'}timeout={client.get('timeoutSeconds', 10)}s"
    name = f"{service.get('name')}.{service.get('namespace')}.svc" if service else None

    async def review(body: bytes) -> bytes:
        context = ssl.create_default_context()
        if client.get("caBundle"):
            context = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
        headers = {"content-type": "application/json"}
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(url, data=body, ssl=context, headers=headers, server_hostname=name) as response,
            ):
                if response.status != 200:
                    raise OSError(f"the server answered with status {response.status}")
                return await response.read()
        except aiohttp.ClientError as error:
            raise OSError(f'Post "{url}": {error}') from None

    return review
