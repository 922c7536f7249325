"""The store: crash consistency, history and watches."""
