"""`python -m spinney.testing.images [FOLDER]`: build Spinney's image and its parts list into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from spinney.testing.golang import Unavailable
from spinney.testing.images.spinney import write_image


def main(arguments: list[str]) -> int:
    """Build into the named folder, dist/ without one, and print the files."""
    try:
        for path in write_image(Path(arguments[0] if arguments else "dist")):
            print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    except Unavailable as error:
        print(f"no image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
