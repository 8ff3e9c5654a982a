"""OpenID Connect: logins at a provider, and the accounts and groups that follow from its claims."""
