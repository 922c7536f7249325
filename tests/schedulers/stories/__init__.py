"""All stories, in the order of the table."""

from importlib import import_module

from tests.schedulers.story import STORIES

for _topic in ("starting", "again", "changing", "topology", "faults", "not_set_up"):
    import_module(f"{__name__}.{_topic}")

__all__ = ["STORIES"]
