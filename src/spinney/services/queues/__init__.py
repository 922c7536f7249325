"""The Queue controller, its metrics, and the Queue webhook."""
