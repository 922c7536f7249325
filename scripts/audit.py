"""Look the locked dependencies up in a database of known vulnerabilities; say so where it cannot be reached.

python scripts/audit.py BIN     the folder of the environment's programs
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOCKS = ("requirements.lock", "deploy/requirements.lock")


def main(folder: str) -> int:
    """1 if a dependency has a known vulnerability; 0 if none is known, or nobody could be asked."""
    tool = Path(folder, "pip-audit")
    if not tool.exists():
        install = [Path(folder, "uv"), "pip", "install", "--quiet", "--python", Path(folder, "python"), "pip-audit"]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            print("audit: not done: pip-audit cannot be installed here")
            return 0
    return max(_audited(tool, lock) for lock in LOCKS)


def _audited(tool: Path, lock: str) -> int:
    command = [tool, "--requirement", lock, "--disable-pip", "--no-deps", "--progress-spinner", "off"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        print(f"audit of {lock}: not done: the database of vulnerabilities does not answer")
        return 0
    vulnerable = "known vulnerabilit" in result.stderr and "No known" not in result.stderr
    if result.returncode and not vulnerable:
        print(f"audit of {lock}: not done: the database of vulnerabilities cannot be reached")
        return 0
    print(f"audit of {lock}: {result.stderr.strip()}\n{result.stdout}".strip())
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
