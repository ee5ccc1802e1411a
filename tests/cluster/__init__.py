"""Tests on a real cluster; and, without one, which bug is planted there for which kind of finding (``planted``)."""
