import { canonicalIp } from "../base/ip.ts";
import type { CertificateInfo, RequestTemplate, PublicKey } from "../ports/certificates.ts";

/** An address of a Node, as its status has it. */
export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

/** Signers of Kubernetes that sign for kubelets. */
export const signers = {
  client: "kubernetes.io/kube-apiserver-client-kubelet",
  serving: "kubernetes.io/kubelet-serving",
} as const;

export type Purpose = keyof typeof signers;

const nodesGroup = "system:nodes";

const nodeUserPrefix = "system:node:";

function userOf(nodeName: string): string {
  return `${nodeUserPrefix}${nodeName}`;
}

/** The other node that a client certificate names; undefined for this node's own, and for one of no node. Pure. */
export function otherNodeOf({ commonName }: Pick<CertificateInfo, "commonName">, nodeName: string): string | undefined {
  const isOther = commonName.startsWith(nodeUserPrefix) && commonName !== userOf(nodeName);
  return isOther ? commonName.slice(nodeUserPrefix.length) : undefined;
}

/** The template of a node's client certificate. Pure. */
export function clientTemplate(nodeName: string): RequestTemplate {
  return { commonName: userOf(nodeName), organizations: [nodesGroup], dnsNames: [], ipAddresses: [] };
}

/**
 * The template of a node's serving certificate; undefined without an address for it. Pure.
 * @param dnsOnly whether names suffice (feature gate AllowDNSOnlyNodeCSR)
 */
export function servingTemplate(
  nodeName: string,
  addresses: readonly NodeAddress[],
  dnsOnly: boolean,
): RequestTemplate | undefined {
  const ofType = (...types: readonly string[]): string[] =>
    addresses.flatMap(({ type, address }) => (types.includes(type) && address !== "" ? [address] : []));
  const hosts = ofType("Hostname");
  const ipAddresses = [...ofType("InternalIP", "ExternalIP"), ...hosts].filter(isIp).map(canonicalIp);
  const dnsNames = [...hosts.filter((host) => !isIp(host)), ...ofType("InternalDNS", "ExternalDNS")];
  if (ipAddresses.length === 0 && !(dnsOnly && dnsNames.length > 0)) return undefined;
  return { ...clientTemplate(nodeName), dnsNames: sorted(dnsNames), ipAddresses: sorted(ipAddresses) };
}

function isIp(text: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/u.test(text) || text.includes(":");
}

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

/** What a certificate lacks of a template, for people; undefined: nothing. More than that does no harm. Pure. */
export function lackOf(certificate: CertificateInfo, template: RequestTemplate): string | undefined {
  if (certificate.commonName !== template.commonName) {
    return `its common name is ${JSON.stringify(certificate.commonName)}, not ${JSON.stringify(template.commonName)}`;
  }
  const has = new Set([...certificate.dnsNames, ...certificate.ipAddresses]);
  const names = [...template.dnsNames, ...template.ipAddresses].filter((name) => !has.has(name));
  if (names.length > 0) return `it does not name ${names.join(", ")}`;
  const groups = template.organizations.filter((group) => !certificate.organizations.includes(group));
  return groups.length > 0 ? `it lacks the group ${groups.join(", ")}` : undefined;
}

/** The requested key usages, in upstream's order: only RSA keys support encipherment. Pure. */
export function usagesOf(purpose: Purpose, key: Pick<PublicKey, "kind">): readonly string[] {
  const auth = purpose === "client" ? "client auth" : "server auth";
  return ["digital signature", auth, ...(key.kind === "rsa" ? ["key encipherment"] : [])];
}

/** Base64 of URLs, without padding. */
function encoded(data: Uint8Array | string): string {
  return Buffer.from(data).toString("base64url");
}

/**
 * The request's name for a key and a template, so that a retry finds the earlier request. For client certificates the
 * same as upstream's, whose digest omits alternative names, as those have none. Pure.
 */
export function requestName(
  key: PublicKey,
  { commonName, organizations, dnsNames, ipAddresses }: RequestTemplate,
  usages: readonly string[],
  sha512t256: (data: string) => Uint8Array,
): string {
  const parts = [key.spki, commonName, ...organizations, ...usages, ...dnsNames, ...ipAddresses];
  return `node-csr-${encoded(sha512t256(parts.map((part) => `${encoded(part)}|`).join("")))}`;
}
