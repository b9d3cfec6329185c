module plimsoll.dev/examples/go-client

go 1.22
