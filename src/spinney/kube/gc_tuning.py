"""How Python's collector of cycles is set in a process that holds many objects and makes hardly any cycles."""

from __future__ import annotations

import gc

# Objects are freed by counting references; with the usual 700 a busy process spends a sixth of its time on looking
# for cycles among what its caches keep.
_NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Look for cycles once in a while instead of all the time."""
    gc.set_threshold(_NEW_OBJECTS, 10, 10)


def keep_what_is_here() -> None:
    """Take everything that is held by now out of the collector's sight: full caches hold no cycles."""
    gc.collect()
    gc.freeze()
