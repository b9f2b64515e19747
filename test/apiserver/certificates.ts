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
  /** Default: a minute ago, because clocks differ. */
  readonly notBefore?: Date;
  /** Default: a day from now. */
  readonly notAfter?: Date;
}

/** A certificate and its key, both PEM. */
export interface Credentials {
  readonly certificate: string;
  readonly key: string;
}

const ecdsaWithSha256 = sequence(oid("1.2.840.10045.4.3.2"));
const hourMs = 3_600_000;

function name({ commonName, organizations = [] }: Subject): Buffer {
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

function alternativeNames(names: readonly string[]): Buffer {
  const entry = (each: string): Buffer => (isIP(each) === 0 ? der(0x82, Buffer.from(each)) : der(0x87, ipBytes(each)));
  return extension("2.5.29.17", false, sequence(...names.map(entry)));
}

const usageIds = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;

/** An in-memory certificate authority: ECDSA P-256, X.509 v3 (RFC 5280). */
export class CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;
  readonly #name: Buffer;

  /** @param issuer of an intermediate authority; default: it is a root */
  constructor(commonName: string, issuer?: CertificateAuthority) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    this.#name = name({ commonName });
    const isCa = extension("2.5.29.19", true, sequence(der(derTag.boolean, Buffer.from([0xff]))));
    // digitalSignature, keyCertSign, cRLSign
    const usage = extension("2.5.29.15", true, der(derTag.bitString, Buffer.from([1, 0b1000_0110])));
    this.certificate = (issuer ?? this).#issue(this.#name, publicKey, [isCa, usage], {
      notBefore: new Date(Date.now() - hourMs),
      notAfter: new Date(Date.now() + 10 * 365 * 24 * hourMs),
    });
  }

  /** Signs a certificate; PEM. */
  sign(request: CertificateRequest): string {
    const usages = request.usages.map((usage) => oid(usageIds[usage]));
    const extensions = [
      extension("2.5.29.15", true, der(derTag.bitString, Buffer.from([7, 0b1000_0000]))), // digitalSignature
      extension("2.5.29.37", false, sequence(...usages)),
      ...(request.names === undefined || request.names.length === 0 ? [] : [alternativeNames(request.names)]),
    ];
    return this.#issue(name(request.subject), request.publicKey, extensions, {
      notBefore: request.notBefore ?? new Date(Date.now() - 60_000),
      notAfter: request.notAfter ?? new Date(Date.now() + 24 * hourMs),
    });
  }

  /** The authority's own certificate and key, for other programs to sign with. */
  get credentials(): Credentials {
    return { certificate: this.certificate, key: this.#key.export({ type: "pkcs8", format: "pem" }) };
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
