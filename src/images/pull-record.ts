import * as z from "zod";
import { ImageReferenceError, parseImageReference } from "./image-reference.ts";
import type { SecretSource } from "./keyring.ts";

/** Secrets known to give access to an image, with a hash of their contents at the time. */
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
/** The credentials that an image was pulled with, by image name without tag (KEP-2535's ImagePulledRecord). */
export type PulledRecord = z.infer<typeof PulledRecord>;

/** A credential from one of a pod's Secrets. */
export interface SecretCredential extends SecretSource {
  readonly credentialHash: string;
}

/** A credential from a provider, for the pod's service account. */
export interface AccountCredential {
  readonly account: SecretSource;
}

/** A credential that not every pod has. */
export type PodCredential = SecretCredential | AccountCredential;

/** The credential that the registry accepted: a pod's, or one that every pod of the node may use. */
export type PulledWith = PodCredential | "node";

/** imagePullCredentialsVerificationPolicy and its allowlist. */
export interface VerificationPolicy {
  /** Off: the feature gate is off, and nothing is verified. */
  readonly policy:
    | "Off"
    | "NeverVerify"
    | "NeverVerifyPreloadedImages"
    | "NeverVerifyAllowlistedImages"
    | "AlwaysVerify";
  /** preloadedImagesVerificationAllowlist: names without tag, or prefixes followed by `/*`. */
  readonly allowlist: readonly string[];
}

/** Why an allowlist pattern is invalid, in upstream's words; undefined: it is valid. */
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

/** Maximum number of Secrets recorded for an image by lookups (upstream's constant). */
const maxSecretsByLooking = 100;

/**
 * Whether a pod has to prove access to a present image. Pure.
 * @param byKubelet a kubelet of this node pulled it; otherwise it was preloaded
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
 * Whether a pod may use the image without a registry check: it was pulled without pod credentials, or with one that
 * this pod has too, by its content or by its Secret. Pure.
 * @returns the pod's matching credential, to be recorded unless the record has it already
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
 * Adds a credential to the record; returns the same object when that changes nothing. Pure.
 * @param looked by a lookup only: then the number of credentials is limited
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
  /** The name in the pod's spec. */
  readonly image: string;
  /** The runtime's reference. */
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

/** An image name without tag and digest, otherwise as written. */
export function withoutTag(image: string): string {
  return image.replace(/@[^@/]*$/u, "").replace(/:[^:/]*$/u, "");
}

/** @throws Error for an invalid record */
export function decodePulledRecord(text: string): PulledRecord {
  return PulledRecord.parse(JSON.parse(text));
}

const kind = (name: string): { readonly kind: string; readonly apiVersion: string } => {
  return { kind: name, apiVersion: "kubelet.config.k8s.io/v1beta1" };
};

/** Encodes the record as the Go kubelet does. */
export function encodePulledRecord(record: PulledRecord): string {
  return `${JSON.stringify({ ...kind("ImagePulledRecord"), ...record })}\n`;
}

/** The marker of a pull in progress, as the Go kubelet writes it. */
export function encodePullIntent(image: string): string {
  return `${JSON.stringify({ ...kind("ImagePullIntent"), image })}\n`;
}

/** @throws Error for an invalid marker */
export function decodePullIntent(text: string): string {
  return z.object({ image: z.string() }).parse(JSON.parse(text)).image;
}
