"""The client of the Kubernetes API: verbs, transports, credentials, retries and flow control."""
