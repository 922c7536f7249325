"""Structured logs on stderr: text for people, JSON for machines."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Format = Literal["text", "json"]
LEVELS = ("debug", "info", "warning", "error")


def configure(form: Format = "text", level: str = "info") -> None:
    """Set up logging for the process and its libraries."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, *_rendering(form)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form)],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)


def warn_on_stderr() -> None:
    """Log warnings only, and never to the output of a command: that is for programs to read."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )


def _rendering(form: Format) -> list[structlog.typing.Processor]:
    """Tracebacks without local variables: these may hold tokens and keys."""
    if form == "json":
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(tracebacks),
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ]
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
