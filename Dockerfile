# An image with codespar and what it runs: git, bubblewrap for the sandbox, certificates.
#
# The binary is that of a release and static: it is not built here. Put it where the build finds it,
# one directory for each architecture of Docker:
#
#   dist/amd64/codespar   dist/arm64/codespar
#
#   docker build -t codespar .
#   docker run --rm -it -v "$PWD:/work" -v codespar:/state -e ANTHROPIC_API_KEY \
#     --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     --security-opt systempaths=unconfined codespar -p "what does this do?"
#
# Commands of agents run in namespaces of their own, which the default profiles of Docker forbid;
# without the three options nothing is run unattended, and `codespar doctor` says so.

FROM debian:stable-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 codespar \
    && install --directory --owner=codespar --group=codespar /work /state

ARG TARGETARCH
COPY --chmod=755 dist/${TARGETARCH}/codespar /usr/local/bin/codespar

ENV CODESPAR_HOME=/state
USER codespar
WORKDIR /work
VOLUME /state
ENTRYPOINT ["codespar"]
