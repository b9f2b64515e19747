import type { KubeTransport } from "../ports/kube-api.ts";
import { clientBounds, sizeBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** What the API server is asked, and how it answers. */
export class ClientMetrics {
  readonly #clock: { monotonic(): number };
  readonly #requests;
  readonly #seconds;
  readonly #sizes;

  constructor(registry: Registry, clock: { monotonic(): number }) {
    this.#clock = clock;
    this.#requests = registry.counter("rest_client_requests_total", "Requests to the API server", [
      "code",
      "host",
      "method",
    ]);
    const labels = ["host", "verb"] as const;
    this.#seconds = registry.histogram(
      "rest_client_request_duration_seconds",
      "Time until the API server's answer begins",
      labels,
      clientBounds,
    );
    this.#sizes = registry.histogram(
      "rest_client_request_size_bytes",
      "Bytes of what is sent to the API server",
      labels,
      sizeBounds,
    );
  }

  /** Counts what goes through a transport. @param host of the API server: `127.0.0.1:6443` */
  measured<T extends KubeTransport>(transport: T, host: string): KubeTransport {
    return {
      send: async (request) => {
        const beganMs = this.#clock.monotonic();
        let code = "<error>";
        try {
          const response = await transport.send(request);
          code = `${response.status}`;
          return response;
        } finally {
          this.#requests.add([code, host, request.method]);
          this.#seconds.observe([host, request.method], (this.#clock.monotonic() - beganMs) / 1000);
          this.#sizes.observe([host, request.method], Buffer.byteLength(request.body ?? ""));
        }
      },
    };
  }
}
