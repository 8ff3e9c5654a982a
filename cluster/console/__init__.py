"""Console pages of compute nodes, storage, profiles and policies."""
