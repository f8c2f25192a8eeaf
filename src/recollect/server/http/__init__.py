"""The HTTP server: our own resources under `/api`, and the Open Responses face under `/v1`."""
