/** What probes call themselves, by the version of Kubernetes whose kubelet this is like. */
export const probeUserAgent = "kube-probe/1.36";

export interface HttpProbeRequest {
  readonly scheme: "http" | "https";
  /** IP address or DNS name. */
  readonly host: string;
  readonly port: number;
  /** With the query, as bytes, a character for each; begins with a slash and holds no control characters. */
  readonly path: string;
  /** As bytes too; sent in this order, without space around them; names with capitals (`X-A`), `Host` among them. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface HttpProbeAnswer {
  readonly status: number;
  /** Its first 10 KiB where the status is 300 to 399, unset for others. The container chose them. */
  readonly body?: Uint8Array;
  /** Set when the last answer was a redirect that was not followed because it leads to another host: which. */
  readonly redirectedTo?: string;
}

/** `status` as grpc.health.v1 names it (`SERVING`, `NOT_SERVING` …); other codes of gRPC with their message. */
export type GrpcHealthAnswer =
  | { readonly code: 0; readonly status: string }
  | { readonly code: number; readonly message: string };

/**
 * The target could not be reached or did not answer as the protocol says; `message` is one clause for people
 * (`connection refused`).
 */
export class ProbeTargetError extends Error {
  /** It was contacted over TLS and answered otherwise, e.g. in plain HTTP. */
  readonly plainText: boolean;
  constructor(message: string, options: ErrorOptions & { readonly plainText?: boolean } = {}) {
    super(message, options);
    this.name = "ProbeTargetError";
    this.plainText = options.plainText ?? false;
  }
}

/**
 * Looks from the node at what containers serve. No connection is kept, shared or sent through a proxy, none leaves a
 * socket in TIME_WAIT on this side, and names are resolved without holding up anything else. Every method rejects with
 * {@link ProbeTargetError} for what the target did, with the signal's reason once it aborts, and with any other error when
 * the probe could not be made at all.
 */
export interface NetworkProbes {
  /**
   * GET, following redirects to the same host, ten at most. Certificates are not verified. Reads at most 10 KiB of the
   * body; a body that breaks off says nothing about the status and counts as a probe that could not be made.
   */
  httpGet(request: HttpProbeRequest, signal: AbortSignal): Promise<HttpProbeAnswer>;
  /** Opens a TCP connection and resets it. */
  tcpConnect(host: string, port: number, signal: AbortSignal): Promise<void>;
  /** grpc.health.v1.Health/Check without TLS (https://github.com/grpc/grpc/blob/master/doc/health-checking.md). */
  grpcHealth(host: string, port: number, service: string, signal: AbortSignal): Promise<GrpcHealthAnswer>;
}
