"""The former name of `actions.types.locking`, for action types of third parties."""

from actions.types.locking import Lockable, find_holders, has_lock, take_all, take_locks

__all__ = ["Lockable", "find_holders", "has_lock", "take_all", "take_locks"]
