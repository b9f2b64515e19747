import type { Cause, PodRef } from "../journal/entry.ts";
import type { SecretSource } from "./keyring.ts";

/** `CredentialProviderRequest` and `CredentialProviderResponse` are of this group. */
export const providerApi = "credentialprovider.kubelet.k8s.io";

/** A program that knows credentials of registries, as CredentialProviderConfig (kubelet.config.k8s.io/v1) has it. */
export interface CredentialProvider {
  /** Of the program in the directory of plugins. */
  readonly name: string;
  /** Registries and repositories for which it is asked: `*.example.org/team`. */
  readonly matchImages: readonly string[];
  /** How long an answer is good for that does not say so. */
  readonly defaultCacheMs: number;
  /** `credentialprovider.kubelet.k8s.io/v1` */
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** It is asked as the pod's service account (KEP-4412); undefined: as the node. */
  readonly tokens: TokenAttributes | undefined;
}

export interface TokenAttributes {
  readonly audience: string;
  /** What an answer is kept by: the account, or its token, when that is what it gives back. */
  readonly cacheType: "ServiceAccount" | "Token";
  /** Pods without an account don't get it asked. */
  readonly required: boolean;
  /** Annotations of the account that the program is told; accounts without a required one don't get it asked. */
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
}

/** The service account of a pod that pulls. */
export interface PullAccount {
  readonly namespace: string;
  readonly name: string;
  look(signal: AbortSignal): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /** A token for that audience, bound to the pod. A secret. */
  token(audience: string, uid: string, signal: AbortSignal): Promise<string>;
}

/** For whom credentials are looked for. */
export interface PullAsker {
  readonly pod: PodRef;
  readonly cause: Cause;
  /** Undefined: the pod has none, or there is no API server to know it. */
  readonly account: PullAccount | undefined;
  readonly signal: AbortSignal;
}

/** Where an account's credential comes from: all pods of that account may use what it opens. */
export type AccountSource = SecretSource;
