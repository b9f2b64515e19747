import { X509Certificate } from "node:crypto";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../ports/node-server.ts";

/** No chain that a client shows is longer; a loop in it would have no end. */
const maxChain = 10;

/** The used part of a connection's socket; HTTP/2 has a stand-in. */
interface PeerSocket extends Pick<TLSSocket, "authorized" | "getPeerX509Certificate"> {
  getPeerCertificate(): Pick<PeerCertificate, "subject" | "valid_to">;
}

/**
 * Tells clients by the certificates of their connections. The handshake has checked those, but connections can last for
 * days: a certificate that has expired since, or whose authority has been taken away, no longer counts.
 */
export class ClientCertificates {
  readonly #nowMs: () => number;
  #authorities: string | undefined;
  #parsed: readonly X509Certificate[] | undefined;
  /** Connections whose chain leads to one of the present authorities, or does not. */
  #vouchedFor = new WeakMap<PeerSocket, boolean>();

  /** @param authorities PEM; undefined: client certificates are ignored */
  constructor(authorities: string | undefined, nowMs: () => number) {
    this.#authorities = authorities;
    this.#nowMs = nowMs;
  }

  /** From now on these authorities count and no others, also for connections that there are. */
  use(authorities: string | undefined): void {
    if (authorities === this.#authorities) return;
    this.#authorities = authorities;
    this.#parsed = undefined;
    this.#vouchedFor = new WeakMap();
  }

  of(socket: PeerSocket | undefined): ClientCertificate | undefined {
    if (this.#authorities === undefined || socket?.authorized !== true) return undefined;
    const { subject, valid_to: validTo } = socket.getPeerCertificate();
    // Of several the last counts, as in Go; an empty one means no user.
    const commonName = all(subject?.CN).at(-1) ?? "";
    if (commonName === "" || !(Date.parse(validTo) >= this.#nowMs()) || !this.#vouches(socket)) return undefined;
    return { commonName, organizations: all(subject.O) };
  }

  #vouches(socket: PeerSocket): boolean {
    const known = this.#vouchedFor.get(socket);
    if (known !== undefined) return known;
    this.#parsed ??= parse(this.#authorities ?? "");
    const vouched = leadsTo(socket.getPeerX509Certificate(), this.#parsed);
    this.#vouchedFor.set(socket, vouched);
    return vouched;
  }
}

function leadsTo(leaf: X509Certificate | undefined, authorities: readonly X509Certificate[]): boolean {
  let certificate = leaf;
  for (let depth = 0; certificate !== undefined && depth < maxChain; depth++) {
    const each = certificate;
    if (authorities.some((authority) => isIssuedBy(each, authority) || each.raw.equals(authority.raw))) return true;
    const issuer: X509Certificate | undefined = each.issuerCertificate;
    certificate = issuer !== undefined && isIssuedBy(each, issuer) ? issuer : undefined;
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function certificateBlocks(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/gu) ?? [];
}

function parse(pem: string): readonly X509Certificate[] {
  // What is no certificate OpenSSL has not taken for an authority either.
  return certificateBlocks(pem).flatMap((block) => parseBlock(block) ?? []);
}

function parseBlock(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined;
  }
}

/**
 * What makes a PEM text useless as a list of authorities: it names none, or one that is no certificate. With such a list
 * every client would be a stranger. Undefined: nothing.
 */
export function authoritiesProblem(pem: string): string | undefined {
  if (pem.trim() === "") return "it is empty";
  const blocks = certificateBlocks(pem);
  if (blocks.length === 0) return "it holds no PEM certificate";
  const unread = blocks.findIndex((block) => parseBlock(block) === undefined);
  return unread < 0 ? undefined : `cannot parse certificate ${unread + 1} of ${blocks.length}`;
}

function all(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
