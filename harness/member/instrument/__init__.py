"""A user's own program as a member: its client library is instrumented while the program imports it.

The harness starts the program as it is, with ``FENCEPOST_MEMBER`` (the file that ``config.read_member`` reads) and with
``site/`` first on ``PYTHONPATH``. What lies there is imported before the program, runs the site's own
``sitecustomize`` as well, and has ``hook`` watch for client libraries. One that is imported gets other classes in place
of some of its own (``confluent_kafka``): clients find the run's brokers, and each consumer that subscribes to the run's
topics is recorded as our own loop is (``account``), under a name of its own (``claims``).

What cannot be instrumented must not run: it would use the addresses in its own configuration. So that ends the program,
with a sentence on stderr. What is not recorded (a consumer that is used in a fork of its process) goes on, and an event
says so (``unrecorded``), which keeps the verdict from being valid.
"""
