"""Admission webhooks: reviews, the TLS server, certificates and registration."""
