import { X509Certificate } from "node:crypto";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../ports/node-server.ts";
import { oid, pem, sequence } from "./der.ts";

/** Kubernetes' attribute of a user's UID, which OpenSSL has no name for. */
const uidAttribute = "1.3.6.1.4.1.57683.2";

/** No real client chain is longer; a loop in one would never end. */
const maxChain = 10;

/** The used part of a connection's socket; HTTP/2 has a proxy object for it. */
interface PeerSocket extends Pick<TLSSocket, "authorized" | "getPeerX509Certificate"> {
  getPeerCertificate(): Pick<PeerCertificate, "valid_to" | "fingerprint256"> & {
    readonly subject: Partial<Readonly<Record<string, string | readonly string[]>>> | undefined;
  };
}

/**
 * Identifies clients by the certificates of their connections. The handshake verified those, but connections can last
 * for days: a certificate that has expired since, or whose authority was removed, no longer counts.
 */
export class ClientCertificates {
  readonly #nowMs: () => number;
  #authorities: string | undefined;
  #parsed: readonly X509Certificate[] | undefined;
  /** By connection: whether its chain leads to one of the current authorities. */
  #vouchedFor = new WeakMap<PeerSocket, boolean>();

  /** @param authorities PEM; undefined: client certificates are ignored */
  constructor(authorities: string | undefined, nowMs: () => number) {
    this.#authorities = authorities;
    this.#nowMs = nowMs;
  }

  /** Replaces the authorities, also for existing connections. */
  use(authorities: string | undefined): void {
    if (authorities === this.#authorities) return;
    this.#authorities = authorities;
    this.#parsed = undefined;
    this.#vouchedFor = new WeakMap();
  }

  of(socket: PeerSocket | undefined): ClientCertificate | undefined {
    if (this.#authorities === undefined || socket?.authorized !== true) return undefined;
    const { subject, valid_to: validTo, fingerprint256 } = socket.getPeerCertificate();
    // The last of several counts, as in Go; an empty one means no user.
    const commonName = all(subject?.["CN"]).at(-1) ?? "";
    if (commonName === "" || !(Date.parse(validTo) >= this.#nowMs()) || !this.#vouches(socket)) return undefined;
    const sha256 = fingerprint256.replaceAll(":", "").toLowerCase();
    return { commonName, organizations: all(subject?.["O"]), uids: all(subject?.[uidAttribute]), sha256 };
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

const clientUsage = oid("1.3.6.1.5.5.7.3.2");

/**
 * Authorities of clients for a server's `ca`: as in Go each is trusted, also an intermediate one whose root is missing.
 * Node.js's servers ignore `allowPartialTrustChain`; OpenSSL's trusted certificates (`openssl x509 -addtrust`) say it
 * themselves.
 * @param authorities PEM; undefined: none
 */
export function clientAnchors(authorities: string | undefined): string[] {
  const trusted = sequence(sequence(clientUsage));
  return parse(authorities ?? "").map(({ raw }) => pem("TRUSTED CERTIFICATE", Buffer.concat([raw, trusted])));
}

function certificateBlocks(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/gu) ?? [];
}

function parse(text: string): readonly X509Certificate[] {
  // An unparsable block is no authority.
  return certificateBlocks(text).flatMap((block) => parseBlock(block) ?? []);
}

function parseBlock(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined;
  }
}

/**
 * Why a PEM text is useless as a list of authorities: it has none, or an invalid one. Such a list would make every
 * client unknown. Undefined: no problem.
 */
export function authoritiesProblem(text: string): string | undefined {
  if (text.trim() === "") return "it is empty";
  const blocks = certificateBlocks(text);
  if (blocks.length === 0) return "it holds no PEM certificate";
  const unread = blocks.findIndex((block) => parseBlock(block) === undefined);
  return unread < 0 ? undefined : `cannot parse certificate ${unread + 1} of ${blocks.length}`;
}

function all(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
