"""Verbs that answer questions about a cluster."""
