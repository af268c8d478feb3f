# The image of weir: one static binary and nothing else. make image builds it; the context is
# bin/image, which scripts/image.sh fills with what the image contains.
FROM scratch
ARG TARGETPLATFORM
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="weir" \
      org.opencontainers.image.description="API rate limiter" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.source="https://github.com/weirhq/weir" \
      org.opencontainers.image.documentation="https://github.com/weirhq/weir/blob/main/docs/guides/install.md"

# /usr/bin/weir, /etc/weir/rules.yaml without rules, and /var/lib/weir for --data, which every user
# can write, so that a volume there needs no change of owner.
COPY $TARGETPLATFORM /

# A container is reached from outside, so weir demands tokens: WEIR_ADMIN_TOKEN or
# WEIR_ADMIN_TOKEN_FILE. All other defaults work on a read-only file system.
ENV WEIR_HTTP=0.0.0.0:8080 \
    WEIR_GRPC=0.0.0.0:8081 \
    WEIR_LISTEN=0.0.0.0:8000 \
    WEIR_RULES=/etc/weir/rules.yaml
EXPOSE 8080 8081 8000
WORKDIR /etc/weir
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["/usr/bin/weir", "health"]
ENTRYPOINT ["/usr/bin/weir"]
CMD ["serve"]
