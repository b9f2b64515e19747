import type { Cause, PodRef } from "../journal/entry.ts";
import type { SecretSource } from "./keyring.ts";

/** The API group of `CredentialProviderRequest` and `CredentialProviderResponse`. */
export const providerApi = "credentialprovider.kubelet.k8s.io";

/** A credential provider plugin, from CredentialProviderConfig (kubelet.config.k8s.io/v1). */
export interface CredentialProvider {
  /** The program's name in the plugin directory. */
  readonly name: string;
  /** Registries and repositories that it is called for: `*.example.org/team`. */
  readonly matchImages: readonly string[];
  /** Cache duration of responses that do not state one. */
  readonly defaultCacheMs: number;
  /** `credentialprovider.kubelet.k8s.io/v1` */
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** It is called as the pod's service account (KEP-4412); undefined: as the node. */
  readonly tokens: TokenAttributes | undefined;
}

export interface TokenAttributes {
  readonly audience: string;
  /** The cache key of responses: the account, or its token when the plugin returns that. */
  readonly cacheType: "ServiceAccount" | "Token";
  /** The plugin is not called for pods without an account. */
  readonly required: boolean;
  /** Annotations of the account that are passed to the plugin; it is not called for accounts without a required one. */
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
}

/** The service account of a pod that pulls. */
export interface PullAccount {
  readonly namespace: string;
  readonly name: string;
  look(signal: AbortSignal): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /** A token for this audience, bound to the pod. A secret. */
  token(audience: string, uid: string, signal: AbortSignal): Promise<string>;
}

/** The pod that credentials are requested for. */
export interface PullAsker {
  readonly pod: PodRef;
  readonly cause: Cause;
  /** Undefined: the pod has none, or there is no API server. */
  readonly account: PullAccount | undefined;
  readonly signal: AbortSignal;
}

/** The origin of an account's credential: all pods of that account may use the images it gives access to. */
export type AccountSource = SecretSource;
