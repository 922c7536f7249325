"""Whether a command printed what its page shows, apart from what differs in every run."""

from __future__ import annotations

import re

# Ages, UIDs, generated names, ports and folders differ from run to run, and one phrase between versions of kubectl.
_DIFFERENT = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "(uid)"),
    (re.compile(r"(?<=-)[0-9a-f]{16}\b"), "(hash)"),
    (re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "(suffix)"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "(time)"),
    (re.compile(r"\b(\d+(\.\d+)?(ms|[smhd]))+\b"), "(age)"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:(port)"),
    (re.compile(r"(KUBECONFIG=)\S+"), r"\1(file)"),
    # Added by kubectl 1.34.
    (re.compile(r"( deleted) from \S+ namespace\b"), r"\1"),
)
# Stands on a page for any text.
_ANY = "…"


def agrees(shown: str, printed: str) -> bool:
    """Compare word by word: a page wraps long lines, and columns grow with generated names."""
    wanted, got = _normal(shown), _normal(printed)
    pattern = ".*".join(re.escape(part.strip()) for part in wanted.split(_ANY))
    return re.fullmatch(pattern, got) is not None


def _normal(text: str) -> str:
    for pattern, word in _DIFFERENT:
        text = pattern.sub(word, text)
    return " ".join(text.split())
