# A node of Kafka: controller, broker, or its dump tool. The base has Java 17 or later, and Kafka in /opt/kafka/libs unless
# the context brings its jars.
ARG BASE=apache/kafka:4.3.1
FROM ${BASE}
ARG FLAGS="-Xms64M -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
USER 0
COPY libs/ /opt/kafka/libs/
COPY template.sh standalone.properties log4j2.yaml /opt/fencepost/
# What is made once so that nodes start in seconds: a class archive, and what `format` writes into a log directory.
RUN sh /opt/fencepost/template.sh "${FLAGS}"
ENTRYPOINT []
