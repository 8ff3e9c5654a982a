"""Walking through a plan against the cloud as it is, executing nothing."""
