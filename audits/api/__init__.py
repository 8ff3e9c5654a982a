"""The API of goals, strategies, scoring engines, audit templates, audits and the data model."""
