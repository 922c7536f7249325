"""What lists, watches, tables, discovery and OpenAPI tell."""
