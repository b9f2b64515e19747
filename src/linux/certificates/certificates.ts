import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { bitString, der, derTag, integer, oid, pem, sequence, time } from "./der.ts";

/** The identity in a certificate: for Kubernetes a user and its groups. */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface CertificateRequest {
  readonly subject: Subject;
  /** The holder's public key. */
  readonly publicKey: KeyObject;
  /** DNS names and IP addresses. */
  readonly names?: readonly string[];
  readonly usages: readonly ("client" | "server")[];
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A certificate and its key, both PEM. */
export interface Credentials {
  readonly certificate: string;
  readonly key: string;
}

export const ecdsaWithSha256 = sequence(oid("1.2.840.10045.4.3.2"));
const hourMs = 3_600_000;

/** A name of X.501, in DER. */
export function distinguishedName({ commonName, organizations = [] }: Subject): Buffer {
  const attribute = (type: string, value: string): Buffer =>
    der(derTag.set, sequence(oid(type), der(derTag.utf8String, Buffer.from(value))));
  const groups = organizations.map((each) => attribute("2.5.4.10", each));
  return sequence(...groups, attribute("2.5.4.3", commonName));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  const mark = critical ? [der(derTag.boolean, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...mark, der(derTag.octetString, value));
}

function ipBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = address.split("::");
  const groups = (text: string | undefined): string[] => (text === undefined || text === "" ? [] : text.split(":"));
  const [left, right] = [groups(head), groups(tail)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, "0")).join(""), "hex");
}

/** The extension of RFC 5280 §4.2.1.6, in DER. @param names DNS names and IP addresses */
export function subjectAlternativeNames(names: readonly string[]): Buffer {
  const entry = (each: string): Buffer => (isIP(each) === 0 ? der(0x82, Buffer.from(each)) : der(0x87, ipBytes(each)));
  return extension("2.5.29.17", false, sequence(...names.map(entry)));
}

const usageIds = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;

/**
 * A self-signed serving certificate for a node, followed by its authority's, whose key is discarded. Clients may pin
 * the former or trust the latter.
 * @param names DNS names and IP addresses; the first is the common name
 */
export function selfSignedCertificate(names: readonly string[], now: Date): Credentials {
  const [first = "localhost"] = names;
  const stamp = Math.floor(now.getTime() / 1000);
  const authority = new CertificateAuthority(`${first}-ca@${stamp}`, now);
  const notAfter = new Date(now.getTime() + 365 * 24 * hourMs);
  const subject = { commonName: `${first}@${stamp}` };
  const { certificate, key } = authority.issue({
    subject,
    names,
    usages: ["server"],
    notBefore: new Date(now.getTime() - hourMs),
    notAfter,
  });
  return { certificate: `${certificate}${authority.certificate}`, key };
}

/** An in-memory certificate authority: ECDSA P-256, X.509 v3 (RFC 5280). */
export class CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;
  readonly #name: Buffer;

  constructor(commonName: string, now: Date) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    this.#name = distinguishedName({ commonName });
    const isCa = extension("2.5.29.19", true, sequence(der(derTag.boolean, Buffer.from([0xff]))));
    // digitalSignature, keyCertSign, cRLSign
    const usage = extension("2.5.29.15", true, der(derTag.bitString, Buffer.from([1, 0b1000_0110])));
    this.certificate = this.#issue(this.#name, publicKey, [isCa, usage], {
      notBefore: new Date(now.getTime() - hourMs),
      notAfter: new Date(now.getTime() + 10 * 365 * 24 * hourMs),
    });
  }

  /** Signs a certificate; PEM. */
  sign(request: CertificateRequest): string {
    const usages = request.usages.map((usage) => oid(usageIds[usage]));
    const extensions = [
      extension("2.5.29.15", true, der(derTag.bitString, Buffer.from([7, 0b1000_0000]))), // digitalSignature
      extension("2.5.29.37", false, sequence(...usages)),
      ...(request.names === undefined || request.names.length === 0 ? [] : [subjectAlternativeNames(request.names)]),
    ];
    return this.#issue(distinguishedName(request.subject), request.publicKey, extensions, {
      notBefore: request.notBefore,
      notAfter: request.notAfter,
    });
  }

  /** Creates a key and a certificate for it. */
  issue(request: Omit<CertificateRequest, "publicKey">): Credentials {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return {
      certificate: this.sign({ ...request, publicKey: createPublicKey(privateKey) }),
      key: privateKey.export({ type: "pkcs8", format: "pem" }),
    };
  }

  #issue(
    subject: Buffer,
    publicKey: KeyObject,
    extensions: readonly Buffer[],
    validity: { readonly notBefore: Date; readonly notAfter: Date },
  ): string {
    const body = sequence(
      der(0xa0, integer(Buffer.from([2]))), // version 3
      integer(randomBytes(16)),
      ecdsaWithSha256,
      this.#name,
      sequence(time(validity.notBefore), time(validity.notAfter)),
      subject,
      publicKey.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(...extensions)),
    );
    return pem("CERTIFICATE", sequence(body, ecdsaWithSha256, bitString(sign("sha256", body, this.#key))));
  }
}
