"""The documentation of docs/, built by Sphinx and served under /docs/."""
