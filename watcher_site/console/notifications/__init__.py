"""The console's pages of subscriptions and of undelivered notifications."""
