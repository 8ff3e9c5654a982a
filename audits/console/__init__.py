"""The pages of audits, and the first page of the console."""
