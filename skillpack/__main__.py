"""``python -m skillpack`` is the ``skills`` command."""

from skillpack.cli import main

main()
