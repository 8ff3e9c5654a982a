"""The console's pages of compute nodes, storage, profiles and policies."""
