import type { ConfigMapManifest, SecretManifest } from "./pod.ts";

/** A ConfigMap's content, base64 decoded. */
export interface ConfigMapContent {
  readonly data: ReadonlyMap<string, string>;
  readonly binaryData: ReadonlyMap<string, Uint8Array>;
}

/** A Secret's content, base64 decoded, `stringData` merged in. */
export interface SecretContent {
  /** Empty where the manifest has none. */
  readonly uid: string;
  /** `Opaque`, `kubernetes.io/dockerconfigjson` … */
  readonly type: string;
  readonly data: ReadonlyMap<string, Uint8Array>;
}

const encoder = new TextEncoder();

/** A ConfigMap's content as containers get it. Pure. */
export function configMapContent({
  data,
  binaryData,
}: Pick<ConfigMapManifest, "data" | "binaryData">): ConfigMapContent {
  return {
    data: new Map(Object.entries(data ?? {})),
    binaryData: new Map(Object.entries(binaryData ?? {}).map(([name, text]) => [name, fromBase64(text)])),
  };
}

/** A Secret's content as containers get it; `stringData` over `data`. Pure. */
export function secretContent({
  metadata,
  type,
  data,
  stringData,
}: Pick<SecretManifest, "type" | "data" | "stringData"> & {
  readonly metadata: { readonly uid?: string | undefined };
}): SecretContent {
  return {
    uid: metadata.uid ?? "",
    type: type || "Opaque",
    data: new Map([
      ...Object.entries(data ?? {}).map(([name, text]) => [name, fromBase64(text)] as const),
      ...Object.entries(stringData ?? {}).map(([name, text]) => [name, encoder.encode(text)] as const),
    ]),
  };
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}
