import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { canonicalIp } from "../../base/ip.ts";
import type { CertificateInfo, CertificateTools, RequestTemplate, PublicKey } from "../../ports/certificates.ts";
import { distinguishedName, ecdsaWithSha256, subjectAlternativeNames } from "./certificates.ts";
import { bitString, der, derTag, integer, oid, pem, sequence } from "./der.ts";

/** Certificates and keys by Node's OpenSSL. */
export const systemCertificateTools: CertificateTools = {
  newKey: () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return privateKey.export({ type: "sec1", format: "pem" });
  },
  publicKey,
  signingRequest,
  certificates: (text) => blocks(text, "CERTIFICATE").map((block) => describe(read(block))),
  split: (text) => {
    const certificates = blocks(text, "CERTIFICATE");
    const [key] = blocks(text, "(?:EC |RSA )?PRIVATE KEY");
    return { certificate: certificates.length === 0 ? undefined : certificates.join(""), key };
  },
  belong: ({ certificate, key }) => {
    const [own] = blocks(certificate, "CERTIFICATE");
    return own !== undefined && read(own).checkPrivateKey(privateKeyOf(key));
  },
  sha512t256: (data) => createHash("sha512-256").update(data).digest(),
};

/** PEM blocks with a label (a pattern), each ending in a newline. */
function blocks(text: string, label: string): string[] {
  const pattern = new RegExp(`-----BEGIN (${label})-----\\r?\\n[A-Za-z0-9+/=\\s]+-----END \\1-----`, "g");
  return [...text.matchAll(pattern)].map(([block]) => `${block.replaceAll("\r", "")}\n`);
}

function read(block: string): X509Certificate {
  try {
    return new X509Certificate(block);
  } catch {
    throw new Error("cannot parse a certificate");
  }
}

function privateKeyOf(key: string) {
  try {
    return createPrivateKey(key);
  } catch {
    // OpenSSL's message does not help, and any other detail would be of a secret.
    throw new Error("cannot parse a private key");
  }
}

function publicKey(key: string): PublicKey {
  const spki = createPublicKey(privateKeyOf(key));
  const { asymmetricKeyType: type } = spki;
  return {
    kind: type === "ec" || type === "rsa" ? type : "other",
    spki: spki.export({ type: "spki", format: "der" }),
  };
}

function describe(certificate: X509Certificate): CertificateInfo {
  const values = (attribute: string): string[] =>
    certificate.subject
      .split("\n")
      .filter((line) => line.startsWith(`${attribute}=`))
      .map((line) => line.slice(attribute.length + 1));
  const names = (certificate.subjectAltName ?? "").split(", ");
  const ofKind = (kind: string): string[] =>
    names.filter((name) => name.startsWith(kind)).map((name) => name.slice(kind.length));
  return {
    commonName: values("CN")[0] ?? "",
    organizations: values("O"),
    dnsNames: ofKind("DNS:"),
    // OpenSSL writes every group of an IPv6 address.
    ipAddresses: ofKind("IP Address:").map((address) => canonicalIp(address)),
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
  };
}

/** RFC 2986, signed with SHA-256 as Go does for these keys. */
function signingRequest(key: string, template: RequestTemplate): string {
  const privateKey = privateKeyOf(key);
  const names = [...template.dnsNames, ...template.ipAddresses];
  const extensionRequest = sequence(
    oid("1.2.840.113549.1.9.14"),
    der(derTag.set, sequence(...(names.length === 0 ? [] : [subjectAlternativeNames(names)]))),
  );
  const info = sequence(
    integer(Buffer.from([0])),
    distinguishedName(template),
    createPublicKey(privateKey).export({ type: "spki", format: "der" }),
    der(0xa0, ...(names.length === 0 ? [] : [extensionRequest])),
  );
  const { asymmetricKeyType: type } = privateKey;
  if (type !== "ec" && type !== "rsa") throw new Error(`keys of kind ${type ?? "?"} are not supported`);
  const rsaWithSha256 = sequence(oid("1.2.840.113549.1.1.11"), der(0x05));
  const algorithm = type === "ec" ? ecdsaWithSha256 : rsaWithSha256;
  return pem("CERTIFICATE REQUEST", sequence(info, algorithm, bitString(sign("sha256", info, privateKey))));
}
