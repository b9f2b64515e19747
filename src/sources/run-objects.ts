import type { ConfigMapManifest, PodSpec, SecretManifest } from "../api/pod.ts";
import type { ConfigMapContent, ObjectLookup, SecretContent } from "../runtime/environment.ts";

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

  setConfigMap({ metadata, data, binaryData }: ConfigMapManifest): void {
    this.#configMaps.set(objectKey(metadata), {
      data: new Map(Object.entries(data ?? {})),
      binaryData: new Map(Object.entries(binaryData ?? {}).map(([key, text]) => [key, fromBase64(text)])),
    });
  }

  setSecret({ metadata, data, stringData }: SecretManifest): void {
    const encoder = new TextEncoder();
    this.#secrets.set(objectKey(metadata), {
      data: new Map([
        ...Object.entries(data ?? {}).map(([key, text]) => [key, fromBase64(text)] as const),
        ...Object.entries(stringData ?? {}).map(([key, text]) => [key, encoder.encode(text)] as const),
      ]),
    });
  }

  remove(kind: "ConfigMap" | "Secret", key: string): void {
    (kind === "ConfigMap" ? this.#configMaps : this.#secrets).delete(key);
  }
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}

/** Names of the ConfigMaps and Secrets that a pod refers to, anywhere in its spec. */
export function referencedObjects(spec: PodSpec): { readonly configMaps: Set<string>; readonly secrets: Set<string> } {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const visit = (value: unknown, field: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, field);
    else if (typeof value === "object" && value !== null) {
      const name: unknown = Reflect.get(value, field === "secret" && "secretName" in value ? "secretName" : "name");
      if (typeof name === "string" && field.startsWith("configMap")) configMaps.add(name);
      if (typeof name === "string" && /secret/iu.test(field)) secrets.add(name);
      for (const [key, child] of Object.entries(value)) visit(child, key);
    }
  };
  visit(spec, "");
  return { configMaps, secrets };
}
