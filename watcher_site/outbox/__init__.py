"""The outbox: event kinds, listeners, payloads, and the rows that a change writes."""
