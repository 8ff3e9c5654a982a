"""Templates of stacks: reading, validation and writing."""
