import type { ConfigMapManifest, SecretManifest } from "../api/pod.ts";
import { invalid, tooLong, type FieldError } from "./field-errors.ts";
import { configKeyProblem } from "../base/formats.ts";
import { validateMetadata } from "./validate-metadata.ts";

/** The most that one ConfigMap or Secret may hold (upstream: MaxSecretSize). */
const maxDataBytes = 1024 * 1024;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;

export function validateConfigMap(object: ConfigMapManifest): FieldError[] {
  return [...validateMetadata(object.metadata), ...validateData(object, "data", "binaryData")];
}

export function validateSecret(object: SecretManifest): FieldError[] {
  return [...validateMetadata(object.metadata), ...validateData(object, "stringData", "data")];
}

type Field = "data" | "stringData" | "binaryData";

/** Never shows a value. A key given in both maps of a ConfigMap is an error; a Secret's stringData wins, as upstream. */
function* validateData(
  object: { readonly [K in Field]?: Readonly<Record<string, string>> | undefined },
  plain: Field,
  encoded: Field,
): Iterable<FieldError> {
  let size = 0;
  for (const field of [plain, encoded]) {
    for (const [key, value] of Object.entries(object[field] ?? {})) {
      const problem = configKeyProblem(key);
      if (problem !== undefined) yield invalid([field, key], key, problem);
      if (field === encoded && !base64.test(value.replaceAll(/[\r\n]/gu, ""))) {
        yield { path: [field, key], detail: "Invalid value: must be base64" };
      }
      if (field === "binaryData" && Object.hasOwn(object.data ?? {}, key)) {
        yield invalid([field, key], key, "duplicate of key present in data");
      }
      size += value.length;
    }
  }
  if (size > maxDataBytes * (4 / 3)) yield tooLong([plain], `${maxDataBytes} bytes of data`);
}
