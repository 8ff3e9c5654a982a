"""The rules for names, and JSON Schema."""
