"""A folder for ``PYTHONPATH``: it holds ``sitecustomize``, which Python imports as a top-level module."""
