"""Settings of Python's garbage collector for processes with many objects and hardly any cycles."""

from __future__ import annotations

import gc

# Objects are freed by counting references; with the usual 700 a busy process spends a sixth of its time on looking
# for cycles among what its caches keep.
_NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Look for cycles rarely."""
    gc.set_threshold(_NEW_OBJECTS, 10, 10)


def keep_what_is_here() -> None:
    """Exclude everything allocated so far from collection: full caches have no cycles."""
    gc.collect()
    gc.freeze()
