"""Users, groups, tokens, members of projects, and the limits on failed logins."""
