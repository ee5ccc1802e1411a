"""The back-end ``attach``: a cluster that others run, proxies before it, and the removal of what a run made in it."""
