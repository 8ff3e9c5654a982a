"""The operations of users on audits and audit templates."""
