"""Debug pages on the loopback address: snapshot, job order, fair shares."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog
from aiohttp import web

from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.client.client import Client
from spinney.scheduler.config import Config
from spinney.scheduler.intake.snapshot import Snapshot, write
from spinney.scheduler.result import Turn
from spinney.scheduler.service.capture import capture
from spinney.scheduler.share.simulation import Question, simulate

_log = structlog.get_logger("spinney.scheduler")

_HOST = "127.0.0.1"
_NANOSECONDS = 1_000_000_000


class DebugPages:
    """The debug pages of a scheduler, reached by `kubectl port-forward`."""

    def __init__(
        self, client: Client, file: SchedulerFile, config: Config, turns: Callable[[], Sequence[Turn] | None]
    ) -> None:
        self._client = client
        self._file = file
        self._config = config
        # The order of the last cycle; None before the first.
        self._turns = turns

    async def serve(self, port: int) -> None:
        """Serve until cancelled; if the port is taken, log it and go on without pages."""
        runner = web.AppRunner(self.application(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, port).start()
            await asyncio.Event().wait()
        except OSError as error:
            _log.warning("pages.not_served", port=port, error=str(error))
        finally:
            await runner.cleanup()

    def application(self) -> web.Application:
        """The pages."""
        application = web.Application(middlewares=[_only_by_address])
        application.router.add_get("/get-snapshot", self._snapshot)
        application.router.add_post("/simulate", self._simulate)
        if any(plugin.name == "reflectjoborder" for plugin in self._config.plugins):
            application.router.add_get("/get-job-order", self._order)
        return application

    async def _snapshot(self, _: web.Request) -> web.Response:
        snapshot = Snapshot((await capture(self._client)).objects, self._configuration(), self._parameters())
        content = await asyncio.to_thread(write, snapshot)
        headers = {"content-type": "application/zip", "content-disposition": "attachment; filename=snapshot.zip"}
        return web.Response(body=content, headers=headers)

    async def _simulate(self, request: web.Request) -> web.Response:
        try:
            question = convert(Question, msgspec.json.decode(await request.read()))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise web.HTTPBadRequest(text=f"not a question about queues: {error}\n") from error
        return web.json_response(simulate(question))

    async def _order(self, _: web.Request) -> web.Response:
        turns = self._turns()
        if turns is None:
            raise web.HTTPServiceUnavailable(text="no cycle has ended yet: ask again in a moment\n")
        by_queue: dict[str, list[Json]] = {}
        for turn in turns:
            by_queue.setdefault(turn.queue, []).append(_entry(turn))
        return web.json_response({"global_order": [_entry(turn) for turn in turns], "queue_order": by_queue})

    def _configuration(self) -> Json:
        plugins = [{"name": plugin.name, "arguments": dict(plugin.arguments)} for plugin in self._config.plugins]
        config: Json = {"actions": ", ".join(self._config.actions), "tiers": [{"plugins": plugins}]}
        if self._config.queue_depth:
            config["queueDepthPerAction"] = dict(self._config.queue_depth)
        if self._file.usage_db_config is not None:
            config["usageDBConfig"] = msgspec.to_builtins(self._file.usage_db_config)
        return config

    def _parameters(self) -> Json:
        file, config = self._file, self._config
        pool = {"NodePoolLabelKey": file.node_pool_label_key, "NodePoolLabelValue": file.partition_label_value}
        return {
            "schedulerName": file.scheduler_name,
            "partitionParams": pool,
            "maxNumberConsolidationPreemptees": config.consolidation_victims,
            "useSchedulingSignatures": config.skip_alike,
            "fullHierarchyFairness": config.full_hierarchy,
            "allowConsolidatingReclaim": config.consolidating_reclaim,
            "globalDefaultStalenessGracePeriod": round(config.staleness_grace * _NANOSECONDS),
        }


def _entry(turn: Turn) -> Json:
    return {"id": turn.job, "priority": turn.priority}


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def _only_by_address(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests with a host name other than localhost (DNS rebinding)."""
    if (request.url.host or "") not in ("127.0.0.1", "localhost", "::1"):
        raise web.HTTPForbidden(text="ask for 127.0.0.1 or localhost\n")
    return await handler(request)
