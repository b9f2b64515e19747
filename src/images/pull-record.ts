import * as z from "zod";
import { ImageReferenceError, parseImageReference } from "./image-reference.ts";
import type { SecretSource } from "./keyring.ts";

/** Secrets of which it is known that they give access to an image, and a hash of what they held then. */
const SecretAccess = z.object({
  uid: z.string(),
  namespace: z.string(),
  name: z.string(),
  credentialHash: z.string(),
});
const Access = z.object({
  kubernetesSecrets: z.array(SecretAccess).optional(),
  kubernetesServiceAccounts: z.array(z.object({ uid: z.string(), namespace: z.string(), name: z.string() })).optional(),
  nodePodsAccessible: z.boolean().optional(),
});
const PulledRecord = z.object({
  lastUpdatedTime: z.string(),
  imageRef: z.string(),
  credentialMapping: z.record(z.string(), Access).optional(),
});

type Access = z.infer<typeof Access>;
/** With which credentials an image was pulled, by its name without tag (KEP-2535's ImagePulledRecord). */
export type PulledRecord = z.infer<typeof PulledRecord>;

/** A credential that a pod brings from one of its Secrets. */
export interface SecretCredential extends SecretSource {
  readonly credentialHash: string;
}

/** A credential that a provider gave for the pod's service account. */
export interface AccountCredential {
  readonly account: SecretSource;
}

/** A credential that not every pod has. */
export type PodCredential = SecretCredential | AccountCredential;

/** What opened the registry: something of the pod's, or something that every pod of the node may use. */
export type PulledWith = PodCredential | "node";

/** imagePullCredentialsVerificationPolicy and what belongs to it. */
export interface VerificationPolicy {
  /** Off: the feature gate is off, and nobody asks. */
  readonly policy:
    | "Off"
    | "NeverVerify"
    | "NeverVerifyPreloadedImages"
    | "NeverVerifyAllowlistedImages"
    | "AlwaysVerify";
  /** preloadedImagesVerificationAllowlist: names without tag, or their beginnings with `/*` behind. */
  readonly allowlist: readonly string[];
}

/** What is wrong with a pattern of the allowlist, in upstream's words; undefined: nothing. */
export function allowlistProblem(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return `leading/trailing spaces are not allowed: ${pattern}`;
  const isWildcard = pattern.endsWith("/*");
  const beginning = isWildcard ? pattern.slice(0, -1) : pattern;
  if (beginning === "") return `the supplied pattern is too short: ${pattern}`;
  if (beginning.includes("*")) {
    return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`;
  }
  if (isWildcard) return beginning === "/" ? "at least registry hostname is required" : undefined;
  try {
    const { tag, digest } = parseImageReference(pattern);
    if (digest === "" && !pattern.endsWith(`:${tag}`)) return undefined;
    return `neither tag nor digest is accepted in an image reference: ${pattern}`;
  } catch (error) {
    if (error instanceof ImageReferenceError) return `failed to parse as an image name: ${error.message}`;
    throw error;
  }
}

/** The most Secrets that are remembered for an image when it is only looked up (upstream's figure). */
const maxSecretsByLooking = 100;

/**
 * Whether a pod has to prove that it may use an image that is on the node. Pure.
 * @param byKubelet a kubelet of this node pulled it; otherwise it was brought in some other way
 */
export function mustVerify({ policy, allowlist }: VerificationPolicy, image: string, byKubelet: boolean): boolean {
  switch (policy) {
    case "Off":
    case "NeverVerify":
      return false;
    case "NeverVerifyPreloadedImages":
      return byKubelet;
    case "AlwaysVerify":
      return true;
    case "NeverVerifyAllowlistedImages": {
      const name = withoutTag(image);
      return !allowlist.some((allowed) => {
        return allowed.endsWith("/*") ? name.startsWith(allowed.slice(0, -1)) : name === allowed;
      });
    }
  }
}

/**
 * Whether the image may be used without asking its registry: it was pulled without the credentials of a pod, or with one
 * that this pod has too, by its content or by its Secret. Pure.
 * @returns the pod's credential that counts; it is worth remembering where the record does not have it as it is
 */
export function provenAccess(
  record: PulledRecord,
  image: string,
  credentials: readonly PodCredential[],
): PulledWith | undefined {
  const access = accessOf(record, image);
  if (access?.nodePodsAccessible) return "node";
  return credentials.find((own) =>
    "account" in own
      ? access?.kubernetesServiceAccounts?.some((known) => isSameSecret(known, own.account))
      : access?.kubernetesSecrets?.some((known) => isSameContent(known, own) || isSameSecret(known, own)),
  );
}

/**
 * The record with one more credential; the same object when that says nothing new. Pure.
 * @param looked the image was only looked up: then there is a bound to what is remembered
 */
export function withAccess(
  record: PulledRecord | undefined,
  { image, imageRef, with: used, looked = false }: PulledImageUse,
  time: string,
): PulledRecord {
  const name = withoutTag(image);
  const before = record && accessOf(record, image);
  if (record !== undefined && before?.nodePodsAccessible) return record;
  const { kubernetesSecrets: known = [], kubernetesServiceAccounts: accounts = [] } = before ?? {};
  if (record !== undefined && used !== "node") {
    const isAccount = "account" in used;
    const same = isAccount
      ? accounts.some((other) => isSameSecret(other, used.account))
      : known.some((other) => isSameSecret(other, used) && isSameContent(other, used));
    if (same || (looked && (isAccount ? accounts : known).length >= maxSecretsByLooking)) return record;
  }
  const { credentialMapping } = record ?? {};
  const after: Access = used === "node" ? { nodePodsAccessible: true } : { ...before, ...accessWith(before, used) };
  return { lastUpdatedTime: time, imageRef, credentialMapping: { ...credentialMapping, [name]: after } };
}

/** An image that was pulled, or found on the node. */
export interface PulledImageUse {
  /** As the pod has it. */
  readonly image: string;
  /** As the runtime has it. */
  readonly imageRef: string;
  readonly with: PulledWith;
  readonly looked?: boolean;
}

function accessWith(before: Access | undefined, used: PodCredential): Access {
  const with_ = <T extends SecretSource>(known: readonly T[] = [], one: T): T[] => {
    const byPlace = (source: SecretSource): string => `${source.namespace}/${source.name}/${source.uid}`;
    const all = [...known.filter((other) => !isSameSecret(other, one)), one];
    return all.toSorted((a, b) => (byPlace(a) < byPlace(b) ? -1 : 1));
  };
  if ("account" in used) {
    const { uid, namespace, name } = used.account;
    return { kubernetesServiceAccounts: with_(before?.kubernetesServiceAccounts, { uid, namespace, name }) };
  }
  const { uid, namespace, name, credentialHash } = used;
  return { kubernetesSecrets: with_(before?.kubernetesSecrets, { uid, namespace, name, credentialHash }) };
}

function accessOf({ credentialMapping = {} }: PulledRecord, image: string): Access | undefined {
  const name = withoutTag(image);
  return Object.hasOwn(credentialMapping, name) ? credentialMapping[name] : undefined;
}

function isSameContent(a: { readonly credentialHash: string }, b: { readonly credentialHash: string }): boolean {
  return a.credentialHash !== "" && a.credentialHash === b.credentialHash;
}

function isSameSecret(a: SecretSource, b: SecretSource): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}

/** An image's name as it was written, without tag and digest. */
export function withoutTag(image: string): string {
  return image.replace(/@[^@/]*$/u, "").replace(/:[^:/]*$/u, "");
}

/** @throws Error when it is no record */
export function decodePulledRecord(text: string): PulledRecord {
  return PulledRecord.parse(JSON.parse(text));
}

const kind = (name: string): { readonly kind: string; readonly apiVersion: string } => {
  return { kind: name, apiVersion: "kubelet.config.k8s.io/v1beta1" };
};

/** The record as the Go kubelet writes it. */
export function encodePulledRecord(record: PulledRecord): string {
  return `${JSON.stringify({ ...kind("ImagePulledRecord"), ...record })}\n`;
}

/** A note that an image is about to be pulled, as the Go kubelet writes it. */
export function encodePullIntent(image: string): string {
  return `${JSON.stringify({ ...kind("ImagePullIntent"), image })}\n`;
}

/** @throws Error when it is no such note */
export function decodePullIntent(text: string): string {
  return z.object({ image: z.string() }).parse(JSON.parse(text)).image;
}
