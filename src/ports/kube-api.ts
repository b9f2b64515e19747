/**
 * Requests of one lane never wait for those of another: each has connections of its own. heartbeats: leases and the
 * node's status. status: pods' statuses, deletions and mirror pods. events: Events. objects: lists, watches and what is
 * read besides.
 */
export type KubeLane = "heartbeats" | "status" | "events" | "objects";

/** A request to the Kubernetes API server; authentication is the transport's responsibility. */
export interface KubeRequest {
  readonly lane: KubeLane;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, percent-encoded: `/api/v1/pods?watch=true`. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, and the body of its answer. */
  readonly signal: AbortSignal;
}

export interface KubeResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** To be read once. Leaving the loop ends the answer. Throws like {@link KubeTransport.send}. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The way to the Kubernetes API server: requests and streams of bytes, so that a server can be simulated behind it. */
export interface KubeTransport {
  /**
   * Resolves with the head of the answer, whatever its status. Rejects with a {@link KubeConnectionError} or with the
   * signal's reason.
   */
  send(request: KubeRequest): Promise<KubeResponse>;
}

/**
 * The API server is unreachable, the connection broke, or authentication is impossible. The request may have been
 * processed.
 */
export class KubeConnectionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "KubeConnectionError";
  }
}
