export interface MetadataRequest {
  readonly method: "GET" | "PUT";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

export interface MetadataAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A cloud's metadata service, on a link-local address of the machine. */
export interface MetadataService {
  /**
   * Asks without proxies and without following redirects: such a service is on this machine's own link. Rejects on
   * connection errors and on bodies past `maxBytes`. The caller judges the status.
   */
  ask(request: MetadataRequest): Promise<MetadataAnswer>;
}
