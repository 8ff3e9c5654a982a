from watcher_site.history.recording import REFUSED, SUCCESS, differences, entries_of, record, record_many

__all__ = ["REFUSED", "SUCCESS", "differences", "entries_of", "record", "record_many"]
