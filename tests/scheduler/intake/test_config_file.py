"""The scheduler's configuration file: upstream's format in, a configuration or a clear refusal out."""

from __future__ import annotations

import pytest

from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import ACTION_PRIORITIES, PLUGIN_PRIORITIES, SchedulerFile, known_plugins
from spinney.scheduler.config import ACTIONS, Config, ConfigError
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.plugins.registry import known


def read(**file: object) -> Config:
    """The configuration of a file."""
    return from_file(convert(SchedulerFile, file))


def test_an_empty_file_gives_the_defaults() -> None:
    """A file that says nothing changes nothing."""
    assert read() == Config()


def test_actions_and_plugins_are_taken_in_the_order_of_the_file() -> None:
    """Order is meaning: comparators are asked and scores summed in it."""
    plugins = [{"name": "priority"}, {"name": "nodeplacement", "arguments": {"gpu": "spread"}}]
    config = read(actions="allocate, reclaim", tiers=[{"plugins": plugins}], queueDepthPerAction={"reclaim": 3})
    assert config.actions == ("allocate", "reclaim")
    assert [plugin.name for plugin in config.plugins] == ["priority", "nodeplacement"]
    assert config.plugins[1].arguments == {"gpu": "spread"}
    assert config.queue_depth == {"reclaim": 3}


def test_flags_reach_the_configuration() -> None:
    """What upstream passes as a flag counts in the file's `args`."""
    config = read(
        args={
            "max-consolidation-preemptees": "3",
            "default-staleness-grace-period": "2m",
            "allow-consolidating-reclaim": "false",
            "reservation-delay": "90s",
            "max-reservations": "2",
        }
    )
    assert (config.consolidation_victims, config.staleness_grace, config.consolidating_reclaim) == (3, 120.0, False)
    assert (config.reserve_after, config.reservations) == (90.0, 2)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"actions": "allocate, dance"}, "action dance is unknown; known are allocate"),
        ({"tiers": [{"plugins": [{"name": "nope"}]}]}, "plugin nope is unknown"),
        ({"actions": "allocate", "queueDepthPerAction": {"preempt": 1}}, "preempt is unknown; known are allocate"),
        ({"args": {"loud": "yes"}}, "flag loud is unknown"),
        ({"args": {"max-consolidation-preemptees": "many"}}, "args.max-consolidation-preemptees is 'many'"),
        ({"args": {"use-scheduling-signatures": "maybe"}}, "it must be true or false"),
    ],
)
def test_mistakes_are_said(file: Json, said: str) -> None:
    """A wrong name or value is refused with what was found and what is allowed."""
    with pytest.raises(ConfigError, match=said):
        from_file(convert(SchedulerFile, file))


def test_the_tables_agree() -> None:
    """The names that a shard may use are those that the scheduler knows."""
    assert known_plugins() == known()
    assert set(ACTION_PRIORITIES) == set(ACTIONS)
    assert set(PLUGIN_PRIORITIES) <= known()
