import type { ApiRequest, ApiResponse } from "./api-server.ts";

/** A client's certificate that the configured CA has signed for use by clients, as Kubernetes reads it. */
export interface ClientCertificate {
  /** The user's name. */
  readonly commonName: string;
  /** The user's groups. */
  readonly organizations: readonly string[];
  /** The user's UIDs, of which Kubernetes accepts at most one (attribute 1.3.6.1.4.1.57683.2). */
  readonly uids: readonly string[];
  /** SHA-256 of the certificate's DER, in lower-case hexadecimal digits. */
  readonly sha256: string;
}

/** A request to the kubelet's API, whose clients are other machines. */
export interface NodeRequest extends ApiRequest {
  /** By name in lower case; of headers that were repeated, all values joined by commas. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Undefined: none was shown, or the client CA has not signed it, or there is no client CA. */
  readonly certificate: ClientCertificate | undefined;
  /** The client requests a protocol switch (HTTP/1.1 Upgrade), so its request may be forwarded. */
  readonly upgrade: boolean;
}

/** The requested streams of a command. */
export interface StreamChoice {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/**
 * Forwards an upgrade request to another server, with its headers; afterwards data is passed in both directions. Only a
 * protocol switch is passed back: a redirect would send the client to an address of the other's choice (CVE-2020-8559).
 */
export interface Forward {
  /** Of a command; undefined: ports are forwarded. */
  readonly streams?: StreamChoice;
  /** `http://127.0.0.1:41000/exec/abc`: where a runtime streams. */
  readonly forwardTo: string;
}

/** Answers one request of the kubelet's API. Never throws but for defects. */
export type NodeHandler = (request: NodeRequest) => Promise<ApiResponse | Forward>;
