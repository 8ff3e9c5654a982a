"""The operations of people on audits and audit templates."""
