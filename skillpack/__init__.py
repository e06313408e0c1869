"""The toolbox behind the ``skills`` command and the scripts of the skills."""

__version__ = "0.1.0"
