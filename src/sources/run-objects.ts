import { isDeepStrictEqual } from "node:util";
import type { ConfigMapManifest, SecretManifest } from "../api/pod.ts";
import { type ConfigMapContent, type SecretContent, configMapContent, secretContent } from "../api/object-content.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";

/** `namespace/name`; objects without a namespace are in `default`. */
export function objectKey(metadata: {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}): string {
  return `${metadata.namespace || "default"}/${metadata.name ?? ""}`;
}

/** The ConfigMaps and Secrets that came with the pods of `podwright run`. */
export class RunObjects implements ObjectLookup {
  readonly #configMaps = new Map<string, ConfigMapContent>();
  readonly #secrets = new Map<string, SecretContent>();

  configMap(namespace: string, name: string): ConfigMapContent | undefined {
    return this.#configMaps.get(objectKey({ namespace, name }));
  }

  secret(namespace: string, name: string): SecretContent | undefined {
    return this.#secrets.get(objectKey({ namespace, name }));
  }

  /** Returns whether that changed anything; otherwise the content stays the same object. */
  setConfigMap({ metadata, data, binaryData }: ConfigMapManifest): boolean {
    const key = objectKey(metadata);
    const before = this.#configMaps.get(key);
    const content = configMapContent({ data, binaryData });
    const same =
      before !== undefined &&
      isDeepStrictEqual(before.data, content.data) &&
      isDeepStrictEqual(before.binaryData, content.binaryData);
    if (!same) this.#configMaps.set(key, content);
    return !same;
  }

  /** Like {@link setConfigMap}. */
  setSecret({ metadata, type, data, stringData }: SecretManifest): boolean {
    const key = objectKey(metadata);
    const content = secretContent({ metadata, type, data, stringData });
    const same = isDeepStrictEqual(this.#secrets.get(key), content);
    if (!same) this.#secrets.set(key, content);
    return !same;
  }

  remove(kind: "ConfigMap" | "Secret", key: string): void {
    (kind === "ConfigMap" ? this.#configMaps : this.#secrets).delete(key);
  }
}
