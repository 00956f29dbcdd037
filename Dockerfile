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
# it is opened at run time. Of C, what nothing calls is left out, and what debuggers
# would unwind by; SQLite loads no extensions, for which it keeps each function. Of Go, what
# pages, the command line, its client and the libraries of settings, logins and metrics call is
# not written into its callers (-l): nobody waits for it; nor what asks Oracle, which waits
# for the network. .ci/size builds by this line, too.
RUN CGO_ENABLED=1 CGO_CFLAGS="-O2 -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -include $PWD/deploy/sqlite.h -include $PWD/deploy/small.h" CGO_LDFLAGS='-O2 -Wl,--gc-sections' go build -trimpath -tags sqlite_omit_load_extension -ldflags='-s -w' -gcflags=github.com/aqueduct-engine/aqueduct/console/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/cmd/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/api/client=-l -gcflags=github.com/aqueduct-engine/aqueduct/config=-l -gcflags=github.com/aqueduct-engine/aqueduct/bench=-l -gcflags=crypto/x509=-l -gcflags=github.com/spf13/...=-l -gcflags=github.com/pelletier/...=-l -gcflags=github.com/go-viper/...=-l -gcflags=github.com/sagikazarmark/...=-l -gcflags=github.com/go-jose/...=-l -gcflags=golang.org/x/oauth2/...=-l -gcflags=github.com/coreos/...=-l -gcflags=google.golang.org/protobuf/...=-l -gcflags=github.com/prometheus/common/...=-l -gcflags=github.com/prometheus/procfs/...=-l -gcflags=go.yaml.in/...=-l -gcflags=github.com/robfig/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/definition/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/access/...=-l -gcflags=github.com/rogpeppe/...=-l -gcflags=github.com/fsnotify/...=-l -gcflags=maragu.dev/...=-l -gcflags=golang.org/x/text/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/replay=-l -gcflags=github.com/aqueduct-engine/aqueduct/tracing/otlp=-l -gcflags=text/template/...=-l -gcflags=github.com/santhosh-tekuri/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/sql/oracle=-l -gcflags=github.com/godror/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/runtime/service=-l -gcflags=github.com/aqueduct-engine/aqueduct/activity=-l -gcflags=net/url=-l -gcflags=encoding/asn1=-l -gcflags=mime/...=-l -gcflags=github.com/aqueduct-engine/aqueduct/migration=-l -gcflags=github.com/aqueduct-engine/aqueduct/operate=-l -gcflags=github.com/aqueduct-engine/aqueduct/humantask=-l -gcflags=github.com/aqueduct-engine/aqueduct/settings=-l -gcflags=github.com/aqueduct-engine/aqueduct/store/survey=-l -gcflags=github.com/aqueduct-engine/aqueduct/sql/history=-l -gcflags=github.com/aqueduct-engine/aqueduct/sql/embedded/schema=-l -gcflags=github.com/aqueduct-engine/aqueduct/compensate=-l -gcflags=github.com/aqueduct-engine/aqueduct/schedule=-l -gcflags=github.com/aqueduct-engine/aqueduct/audit=-l -gcflags=github.com/aqueduct-engine/aqueduct/sql/steps=-l -gcflags=github.com/aqueduct-engine/aqueduct/ack=-l -gcflags=crypto/tls=-l -o /out/ ./cmd/engine-node ./examples/services

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
COPY --chmod=0755 deploy/oracle/node.sh deploy/oracle/ready.sh /usr/local/bin/
COPY --from=build /out/engine-node /out/services /usr/local/bin/
# The client reads its environment in C, before the program could set it.
ENV TNS_ADMIN=/etc/oracle HOME=/tmp NLS_LANG=.AL32UTF8
USER 10001:10001
WORKDIR /var/lib/aqueduct
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["ready.sh"]
ENTRYPOINT ["node.sh"]
CMD ["engine-node", "serve"]
