"""The binder: carries out BindRequests and reports their outcome."""
