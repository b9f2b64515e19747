import type { KubeRequest, KubeTransport } from "../ports/kube-api.ts";
import { clientBounds, sizeBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** Requests to the API server, and their responses. */
export class ClientMetrics {
  readonly #clock: { monotonic(): number };
  readonly #requests;
  readonly #seconds;
  readonly #sizes;
  readonly #answerSizes;
  readonly #waits;

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
      "Time to the first byte of the API server's response",
      labels,
      clientBounds,
    );
    this.#sizes = registry.histogram(
      "rest_client_request_size_bytes",
      "Size of requests to the API server",
      labels,
      sizeBounds,
    );
    this.#answerSizes = registry.histogram(
      "rest_client_response_size_bytes",
      "Size of the API server's responses, watches excluded",
      labels,
      sizeBounds,
    );
    this.#waits = registry.histogram(
      "rest_client_rate_limiter_duration_seconds",
      "Time that requests wait for the rate limits kubeAPIQPS and eventRecordQPS",
      labels,
      clientBounds,
    );
  }

  /** Observes the rate limiter's waits. @param host of the API server */
  waited(host: string): (method: KubeRequest["method"], durationMs: number) => void {
    return (method, durationMs) => this.#waits.observe([host, method], durationMs / 1000);
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
          if (isWatch(request)) return response;
          const observe = (bytes: number): void => this.#answerSizes.observe([host, request.method], bytes);
          return { ...response, body: weighed(response.body, observe) };
        } finally {
          this.#requests.add([code, host, request.method]);
          this.#seconds.observe([host, request.method], (this.#clock.monotonic() - beganMs) / 1000);
          this.#sizes.observe([host, request.method], Buffer.byteLength(request.body ?? ""));
        }
      },
    };
  }
}

function isWatch({ path }: KubeRequest): boolean {
  return /[?&]watch=(?:1|true)\b/u.test(path);
}

/** The same, and reports the total bytes at the end. */
async function* weighed(body: AsyncIterable<Uint8Array>, observe: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    yield chunk;
  }
  observe(bytes);
}
