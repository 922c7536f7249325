"""The operator's benchmark by its usual name; it lives in podcliquesets.py.

A script's folder comes first on the path, where this name hides the standard library's `operator`: whoever imports
that from a neighbouring script gets the real one from here.
"""

import sys

_FOLDER = __file__.rpartition("/")[0]
_path = sys.path[:]
sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != _FOLDER]

if __name__ == "__main__":
    import operator  # the real one, before our folder is on the path again
    import runpy

    sys.path[:] = _path
    runpy.run_path(f"{_FOLDER}/podcliquesets.py", run_name="__main__")
else:
    del sys.modules["operator"]
    import operator  # noqa: F401  # takes our place in sys.modules

    sys.path[:] = _path
