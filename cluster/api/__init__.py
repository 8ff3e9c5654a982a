"""The API of profiles and policies."""
