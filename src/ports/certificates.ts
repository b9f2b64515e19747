/** Whom a certificate names, and for how long. */
export interface CertificateInfo {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  /** As Node.js and Go write them: `10.0.0.1`, `fd00::1`. */
  readonly ipAddresses: readonly string[];
  /** Wall clock, milliseconds. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** The content of a certificate request. */
export interface RequestTemplate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

export interface PublicKey {
  readonly kind: "ec" | "rsa" | "other";
  /** SubjectPublicKeyInfo (RFC 5280), DER. */
  readonly spki: Uint8Array;
}

/** A certificate with what follows it in its chain, and its key: PEM both. The key is a secret. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Keys, requests and certificates. All texts are PEM; an invalid one throws an Error that shows nothing of it. */
export interface CertificateTools {
  /** A new private key (ECDSA P-256, `EC PRIVATE KEY`). */
  newKey(): string;
  publicKey(key: string): PublicKey;
  /** A certificate signing request (PKCS #10), signed by the key. */
  signingRequest(key: string, template: RequestTemplate): string;
  /** The certificates in a text, in their order; other content is ignored. */
  certificates(text: string): readonly CertificateInfo[];
  /** The text's certificates and its first private key, normalized; undefined if missing. */
  split(text: string): { readonly certificate: string | undefined; readonly key: string | undefined };
  /** Whether the key is that of the first certificate. */
  belong(pair: KeyPair): boolean;
  /** SHA-512/256. */
  sha512t256(data: Uint8Array | string): Uint8Array;
}
