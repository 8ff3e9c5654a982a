"""What is left out of the logs."""

import logging


class WithoutTraceback(logging.Filter):
    """Leaves out where a message comes from, for those that say all there is to know."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True
