# turnkeep in a container, without root. See docs/operations.md.
#
#   docker build -t turnkeep .
#   docker run -p 127.0.0.1:7420:7420 -v turnkeep:/var/lib/turnkeep \
#       -v ./password:/run/secrets/password:ro turnkeep

FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
# The caches outlive a build, so that a change of ours does not compile everything else again.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --release --package turnkeep \
    && install -D target/release/turnkeep /out/turnkeep

FROM debian:bookworm-slim
# curl asks for the health of the host, as root or anyone else could.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 7420 --home-dir /var/lib/turnkeep --create-home turnkeep \
    && chmod 0700 /var/lib/turnkeep
COPY --from=build /out/turnkeep /usr/local/bin/turnkeep
USER turnkeep
WORKDIR /var/lib/turnkeep
# The network of a container is not the loopback: without a password the host refuses to start.
ENV TURNKEEP_STORE=/var/lib/turnkeep/sessions \
    TURNKEEP_LISTEN=0.0.0.0:7420 \
    TURNKEEP_PASSWORD_FILE=/run/secrets/password \
    TURNKEEP_LOG_FORMAT=json
VOLUME /var/lib/turnkeep
EXPOSE 7420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["curl", "--fail", "--silent", "--output", "/dev/null", "http://127.0.0.1:7420/health"]
ENTRYPOINT ["turnkeep"]
CMD ["serve"]
