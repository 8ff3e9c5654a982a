"""OpenID Connect: logins at a provider, and the accounts and groups that are derived from its claims."""
