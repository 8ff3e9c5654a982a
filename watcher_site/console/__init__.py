"""Base classes and shared parts of the console's pages, and pages that belong to no other app."""
