"""What a client sees on the wire: HTTPS, content types, discovery, OpenAPI and probes."""
