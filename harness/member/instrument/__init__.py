"""A user's own program as a member: its client library is instrumented while the program imports it.

The harness starts the unchanged program, with ``FENCEPOST_MEMBER`` (the file that ``config.read_member`` reads) and
with ``site/`` first on ``PYTHONPATH``. Python imports the ``sitecustomize`` in ``site/`` before the program. That
module installs ``hook``, which watches for client libraries, and runs the environment's own ``sitecustomize``, too.
When a client library is imported, some of its classes are replaced (``confluent_kafka``): clients connect to the run's
brokers, and each consumer that subscribes to the run's topics is recorded like our own loop (``member_events``), under
its own name (``consumer_names``).

A program that cannot be instrumented must not run: it would use the addresses in its own configuration. It ends with a
message on stderr. Activity that cannot be recorded (a consumer that is used in a fork of its process) is allowed, but
an event reports it (``unrecorded``), and the verdict cannot be valid.
"""
