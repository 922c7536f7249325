"""Kinds that CRDs add: definitions, schemas and objects."""
