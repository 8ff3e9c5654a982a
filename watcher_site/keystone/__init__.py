"""Keystone: validation of its tokens by keystonemiddleware, and the users that these identify."""
