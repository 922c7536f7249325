"""The tables that the server prints for `kubectl get`."""
