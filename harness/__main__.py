"""``python -m fencepost`` does the same as the command ``fencepost``."""

from fencepost.cli.commands import main

main()
