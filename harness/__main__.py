"""``python -m fencepost``: the same as the command ``fencepost``."""

from fencepost.cli.commands import main

main()
