"""The site in Horizon, with watcher-dashboard, on a real Keystone."""
