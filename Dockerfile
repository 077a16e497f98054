# Two images from one file: `docker build --target webhook -t flight-webhook .` and the same for `controller`.
# Static programs on an empty base, as a numeric user without rights; no shell, no package manager.
FROM golang:1.26 AS build
ARG VERSION=""
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
COPY policies policies
COPY webhooks webhooks
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=${VERSION}" \
    -o /out/ ./cmd/webhook ./cmd/controller

FROM gcr.io/distroless/static:nonroot AS webhook
COPY --from=build /out/webhook /webhook
USER 65532:65532
ENTRYPOINT ["/webhook"]

FROM gcr.io/distroless/static:nonroot AS controller
COPY --from=build /out/controller /controller
USER 65532:65532
ENTRYPOINT ["/controller"]
