import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { badRequest } from "./api-error.ts";
import type { Subject } from "./certificates.ts";
import { type DerElement, derTag, readDer, readOid, readPem } from "./der.ts";

/** A certificate signing request (PKCS #10, RFC 2986). */
export interface SigningRequest {
  readonly subject: Subject;
  readonly publicKey: KeyObject;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Whether it requests other kinds of names: mail addresses, URIs. */
  readonly hasOtherNames: boolean;
}

/** Hashes by signature algorithm; `null`: implied by the algorithm. */
const hashes: Readonly<Record<string, string | null>> = {
  "1.2.840.10045.4.3.2": "sha256",
  "1.2.840.10045.4.3.3": "sha384",
  "1.2.840.10045.4.3.4": "sha512",
  "1.2.840.113549.1.1.11": "sha256",
  "1.2.840.113549.1.1.12": "sha384",
  "1.2.840.113549.1.1.13": "sha512",
  "1.3.101.112": null,
};

function children(element: DerElement | undefined): DerElement[] {
  if (element === undefined) throw new Error("an element is missing");
  return readDer(element.content);
}

function readSubject(name: DerElement | undefined): Subject {
  const organizations: string[] = [];
  let commonName = "";
  for (const set of children(name)) {
    for (const attribute of children(set)) {
      const [type, value] = children(attribute);
      const id = type === undefined ? "" : readOid(type.content);
      const text = value?.content.toString() ?? "";
      if (id === "2.5.4.3") commonName = text;
      if (id === "2.5.4.10") organizations.push(text);
    }
  }
  return { commonName, organizations };
}

function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join(".");
  return (bytes.toString("hex").match(/.{4}/g) ?? []).map((group) => group.replace(/^0+(?=.)/, "")).join(":");
}

/** The general names in the requested subject alternative name extension. */
function readNames(
  attributes: DerElement | undefined,
): Pick<SigningRequest, "dnsNames" | "ipAddresses" | "hasOtherNames"> {
  const names: DerElement[] = [];
  for (const attribute of attributes === undefined ? [] : children(attributes)) {
    const [type, values] = children(attribute);
    if (type === undefined || readOid(type.content) !== "1.2.840.113549.1.9.14") continue;
    for (const extensions of children(values)) {
      for (const extension of children(extensions)) {
        const [id, ...rest] = children(extension);
        if (id === undefined || readOid(id.content) !== "2.5.29.17") continue;
        for (const list of readDer(rest.at(-1)?.content ?? Buffer.alloc(0))) names.push(...children(list));
      }
    }
  }
  return {
    dnsNames: names.filter(({ tag }) => tag === 0x82).map(({ content }) => content.toString()),
    ipAddresses: names.filter(({ tag }) => tag === 0x87).map(({ content }) => ipText(content)),
    hasOtherNames: names.some(({ tag }) => tag !== 0x82 && tag !== 0x87),
  };
}

function parse(bytes: Buffer): SigningRequest {
  const [info, algorithm, signature] = children(readDer(bytes)[0]);
  const [, name, key, attributes] = children(info);
  const [algorithmId] = children(algorithm);
  const hash = algorithmId === undefined ? undefined : hashes[readOid(algorithmId.content)];
  if (info === undefined || key === undefined || signature?.tag !== derTag.bitString) {
    throw new Error("it is not complete");
  }
  if (hash === undefined) throw new Error("its signature algorithm is not known");
  const publicKey = createPublicKey({ key: key.whole, format: "der", type: "spki" });
  // The first byte of a bit string is its number of unused bits.
  if (!verify(hash, info.whole, publicKey, signature.content.subarray(1))) throw new Error("its signature is wrong");
  return { subject: readSubject(name), publicKey, ...readNames(attributes) };
}

/**
 * Decodes a CertificateSigningRequest's request and verifies its signature.
 * @param request `spec.request`: PEM in base64
 * @throws ApiError 400
 */
export function readRequest(request: string): SigningRequest {
  const bytes = readPem("CERTIFICATE REQUEST", Buffer.from(request, "base64").toString());
  if (bytes === undefined) throw badRequest("spec.request: PEM block type must be CERTIFICATE REQUEST");
  try {
    return parse(bytes);
  } catch (error) {
    throw badRequest(`spec.request: ${error instanceof Error ? error.message : String(error)}`);
  }
}
