# syntax=docker/dockerfile:1

# The node with Oracle Instant Client, for linux/amd64.
#
#   deploy/oracle/client-sum.sh        # once: notes the checksum of the client in .env
#   docker build --build-arg INSTANT_CLIENT_SHA256=... -t aqueduct/engine-node:local .
#
# The node listens on loopback: `docker run -p` reaches nothing. See
# docker-compose.yml for what does.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The Oracle driver and SQLite are C. The client library is not needed to build:
# it is opened at run time.
RUN CGO_ENABLED=1 go build -trimpath -ldflags='-s -w' -o /out/ ./cmd/engine-node ./examples/services

FROM debian:bookworm-20260824-slim AS client
ARG INSTANT_CLIENT_VERSION=23.26.3.0.0
ARG INSTANT_CLIENT_FOLDER=2326300
ARG INSTANT_CLIENT_URL=https://download.oracle.com/otn_software/linux/instantclient/${INSTANT_CLIENT_FOLDER}/instantclient-basiclite-linux.x64-${INSTANT_CLIENT_VERSION}.zip
# No default: a checksum is only worth what its source is.
ARG INSTANT_CLIENT_SHA256
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl unzip \
 && rm -rf /var/lib/apt/lists/*
RUN if [ -z "$INSTANT_CLIENT_SHA256" ]; then \
      echo "give --build-arg INSTANT_CLIENT_SHA256; deploy/oracle/client-sum.sh prints it" >&2; exit 1; \
    fi \
 && curl -fsSL --retry 3 -o /opt/client.zip "$INSTANT_CLIENT_URL" \
 && echo "$INSTANT_CLIENT_SHA256  /opt/client.zip" | sha256sum -c - \
 && mkdir -p /opt/oracle \
 && unzip -q -o /opt/client.zip 'instantclient_*' -d /opt/oracle \
 && mv /opt/oracle/instantclient_* /opt/oracle/instantclient \
 && rm /opt/client.zip

FROM debian:bookworm-20260824-slim
# libaio1 is needed by Instant Client, curl by the health check.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl libaio1 tzdata \
 && rm -rf /var/lib/apt/lists/*
COPY --from=client /opt/oracle/instantclient /opt/oracle/instantclient
# Linux finds the client by ldconfig; a folder in the data source is ignored.
RUN echo /opt/oracle/instantclient > /etc/ld.so.conf.d/oracle.conf \
 && ldconfig \
 && ldconfig -p | grep -q libclntsh.so \
 && useradd --system --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin aqueduct \
 && install -d -o aqueduct -g aqueduct /var/lib/aqueduct
COPY deploy/oracle/sqlnet.ora /etc/oracle/sqlnet.ora
COPY --chmod=0755 deploy/oracle/node.sh /usr/local/bin/node.sh
COPY --from=build /out/engine-node /out/services /usr/local/bin/
# The client reads its environment in C, before the program could set it.
ENV TNS_ADMIN=/etc/oracle HOME=/tmp NLS_LANG=.AL32UTF8
USER 10001:10001
WORKDIR /var/lib/aqueduct
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD curl -fsS "http://${AQUEDUCT_LISTEN:-127.0.0.1:8080}/readyz" >/dev/null
ENTRYPOINT ["node.sh"]
CMD ["engine-node", "serve"]
