import { configurationFlags } from "./flag-table.ts";
import type { NodeFlagValues } from "./flags.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import { isJsonMap, valueAt } from "./json.ts";
import { nodeFlags } from "./node-flag-table.ts";

/** Header values are often credentials. */
const masked = "<masked>";

/** The configuration as a file that a kubelet would start with: with its secrets, as upstream. */
export function servedConfiguration(configuration: KubeletConfiguration): object {
  return { kind: "KubeletConfiguration", apiVersion: "kubelet.config.k8s.io/v1beta1", ...configuration };
}

function withoutSecrets(configuration: KubeletConfiguration): KubeletConfiguration {
  const { staticPodURL, staticPodURLHeader } = configuration;
  return {
    ...configuration,
    ...(staticPodURL !== undefined && { staticPodURL: maskedUrl(staticPodURL) }),
    ...(staticPodURLHeader && {
      staticPodURLHeader: Object.fromEntries(Object.keys(staticPodURLHeader).map((name) => [name, [masked]])),
    }),
  };
}

/** Every flag with its effective value, from the command line, a file or the default; secrets are masked. */
export function shownFlags(configuration: KubeletConfiguration, given: NodeFlagValues): Map<string, string> {
  const shown = withoutSecrets(configuration);
  const values = new Map<string, string>();
  for (const [name, { field }] of configurationFlags) values.set(name, textOf(valueAt(shown, field)));
  const byName = new Map<string, unknown>(Object.entries(given));
  for (const [name, { support }] of Object.entries(nodeFlags)) {
    const field = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (support === "honoured" && !values.has(name)) values.set(name, textOf(byName.get(field)));
  }
  values.set("version", given.version?.reported ?? "false");
  return values;
}

/** User, password and query may be secret. */
function maskedUrl(url: string): string {
  return url.replace(/^(\w+:\/\/)[^/@]*@/, `$1${masked}@`).replace(/\?.*$/su, `?${masked}`);
}

/** Flag syntax: lists and maps with commas; empty if unset. */
function textOf(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((each) => (isJsonMap(each) ? JSON.stringify(each) : textOf(each))).join();
  if (!isJsonMap(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, each]) => `${name}=${textOf(each)}`)
    .join();
}
