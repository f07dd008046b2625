# The one image of all programs. hack/image.sh builds the same without a container engine.
#
#   docker buildx build --platform linux/amd64,linux/arm64 -t relayops .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN mkdir /out && for program in cmd/*; do \
      CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags '-s -w' \
        -o /out/$(basename $program) ./$program || exit 1; \
    done

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.source=https://github.com/relayops/relayops
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/manager"]
