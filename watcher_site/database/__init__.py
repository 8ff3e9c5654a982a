"""Columns, statements, locks and SQL expressions for PostgreSQL and SQLite."""
