"""Watch caches: objects of the API server, kept current in memory."""
