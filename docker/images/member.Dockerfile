# A member: Python 3.8 or later with client libraries, from the context where that brings them. Fencepost's own member side
# is mounted when it starts, so it is always that of the harness.
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE}
ARG CLIENTS="confluent-kafka kafka-python"
COPY packages/ /opt/fencepost/packages/
RUN export PYTHONPATH=/opt/fencepost/packages \
    && { python3 -c 'import confluent_kafka' || python3 -m pip install --no-cache-dir --target /opt/fencepost/packages ${CLIENTS}; } \
    && python3 -c 'import confluent_kafka'
ENTRYPOINT []
