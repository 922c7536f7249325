"""Field checks that several kinds share, and those that are too long for the module of their kind."""
