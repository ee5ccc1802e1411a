# The proxies, with ss beside them: what it counts is the witness of bytes that vanish. The context brings the server.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN command -v ss || { apt-get update && apt-get install -y --no-install-recommends iproute2 && rm -rf /var/lib/apt/lists; }
COPY toxiproxy-server /usr/local/bin/toxiproxy-server
ENTRYPOINT []
