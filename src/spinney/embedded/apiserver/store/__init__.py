"""Where objects are kept: in memory with versions and events, and in a journal on disk."""
