"""The back-end ``docker``: images, containers, networks and packet rules of a cluster that runs on a Docker engine."""
