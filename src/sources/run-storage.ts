import type { Pod } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import type { ObjectPlan } from "../server/local-api.ts";
import type { ManifestError } from "../yaml/manifest-error.ts";
import type { Checked } from "./prepare.ts";

/** Keeps the claims of `podwright run`, and what is behind them. */
export interface RunStorage {
  /** Reads what earlier runs kept; returns what cannot be read. To be called before anything else. */
  load(): Promise<readonly string[]>;
  /** What cannot be read still. */
  readonly unreadable: readonly string[];
  /** Why these objects cannot be taken beside those that are there. */
  problems(objects: readonly Checked<StorageManifest>[]): readonly ManifestError[];
  /**
   * Gets what the objects and pods need of this machine, before they are taken.
   * @throws PodwrightError when pods need what cannot be had, with a problem for each of them
   */
  prepare(objects: readonly StorageManifest[], pods: readonly Pod[]): Promise<void>;
  /** The same for the pods of earlier runs, which go on whatever the problem is now. Never rejects. */
  resume(pods: readonly Pod[]): Promise<void>;
  /**
   * Accepts objects without problems, and binds claims for the pods in the same request. Resolves when that is on disk.
   */
  take(objects: readonly StorageManifest[], pods: readonly Pod[]): Promise<void>;
  /** The effect of {@link take}, and of claims of the pods' own. */
  preview(objects: readonly StorageManifest[], pods: readonly Pod[]): StoragePreview;
  /** The Secrets that it needs, as `namespace/name`. */
  secrets(): ReadonlySet<string>;
  /** No pod is wanted any more: what no claim is bound to is forgotten. */
  forgetUnused(): Promise<void>;
}

export interface StoragePreview {
  readonly objects: readonly ObjectPlan[];
  /** What each pod would wait for, in the order of the pods. */
  readonly waits: readonly (readonly string[])[];
}
