"""Get, list and watch, with selectors."""
