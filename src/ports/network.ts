export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly body: Uint8Array;
}

/** Network connections that podwright itself opens: manifest URLs now, probes and hooks later. */
export interface Network {
  /** GET; rejects on connection errors and on bodies past `maxBytes`. The caller judges the status. */
  httpGet(request: HttpRequest): Promise<HttpResponse>;
  /** This machine's interfaces, each with its addresses without those of loopback and link-local ones. */
  interfaces(): { readonly name: string; readonly addresses: readonly string[] }[];
  /** Addresses of a name, by the machine's hosts file, else by DNS, without search domains. @throws Error: there are none */
  lookUp(name: string, signal: AbortSignal): Promise<string[]>;
  /** This machine's addresses in the order the system lists them, without loopback and link-local ones. */
  addresses(): string[];
}
