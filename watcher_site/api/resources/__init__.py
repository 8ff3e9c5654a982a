"""The resources of the API that belong to no other app."""
