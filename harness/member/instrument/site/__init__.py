"""Nothing but a folder for ``PYTHONPATH``: it holds ``sitecustomize``, which is nobody's module of this package."""
