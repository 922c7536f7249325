"""The decision core: pure, in arrays; only `service.py` talks to Kubernetes."""
