"""Files that a reader never sees half written."""

from ajet.utils.files import replace_file as write_atomically

__all__ = ["write_atomically"]
