"""Every command of `spinney`, with its options, from click."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
from scripts.reference.tables import code, opening, table

from spinney.cli.main import COMMANDS, main

_TEXT = """Every command prints this with `--help`. `kubectl spinney ls` is the same as `spinney ls`. A command ends
with 0, with 1 after an error, and with 2 if it was called wrongly. Errors are one line on stderr."""


def page() -> str:
    """The page of commands."""
    lines = opening("Commands", _TEXT)
    context = click.Context(main, info_name="spinney")
    for name in sorted(COMMANDS):
        command = main.get_command(context, name)
        assert command is not None
        lines += _command(command, context, name)
    return "\n".join(lines)


def _command(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    yield f"## {context.command_path}"
    yield ""
    text, _, examples = inspect.cleandoc(f"{command.help or ''}\n\n{command.epilog or ''}").partition("\b\n")
    yield from (*inspect.cleandoc(text).splitlines(), "")
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from ("```", f"{context.command_path} {pieces}", "```", "")
    if examples:
        yield from ("```", *inspect.cleandoc(examples).splitlines(), "```", "")
    options = [
        parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    if options:
        yield from table(("option", "meaning", "default"), (_option(option, context) for option in options))
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            inner = command.get_command(context, sub)
            assert inner is not None
            yield from _command(inner, context, sub)


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    names = ", ".join((*option.opts, *option.secondary_opts))
    value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
    default = option.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and not option.is_flag
    return code(f"{names}{value}"), option.help or "", code(str(default)) if shown and option.show_default else ""
