"""The console's pages of clusters and of their nodes."""
