"""The rows that mirror a cloud, written from its contents."""
