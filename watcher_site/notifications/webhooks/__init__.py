"""The receivers over HTTP."""
