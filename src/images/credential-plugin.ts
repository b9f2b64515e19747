import * as z from "zod";
import { parseGoDuration } from "../base/go-duration.ts";
import { type CredentialProvider, providerApi } from "./credential-provider.ts";
import type { RegistryEntry } from "./docker-config.ts";

/** A plugin's response. A secret. */
export interface PluginAnswer {
  readonly entries: readonly RegistryEntry[];
  /** The part of the image's name that the response applies to. */
  readonly cacheKeyType: "Image" | "Registry" | "Global";
  /** Undefined: the configuration's default; 0: not cached. */
  readonly cacheMs: number | undefined;
}

const Answer = z.looseObject({
  apiVersion: z.string(),
  kind: z.literal("CredentialProviderResponse"),
  cacheKeyType: z.string().optional(),
  cacheDuration: z.string().nullish(),
  auth: z
    .record(z.string(), z.looseObject({ username: z.string().optional(), password: z.string().optional() }))
    .nullish(),
});

/** The request on a plugin's standard input. */
export function pluginRequest(
  { apiVersion }: Pick<CredentialProvider, "apiVersion">,
  image: string,
  account: { readonly token: string; readonly annotations: Readonly<Record<string, string>> } | undefined,
): string {
  const annotations = account?.annotations ?? {};
  return JSON.stringify({
    kind: "CredentialProviderRequest",
    apiVersion,
    image,
    ...(account && { serviceAccountToken: account.token }),
    ...(Object.keys(annotations).length > 0 && { serviceAccountAnnotations: annotations }),
  });
}

/**
 * Decodes a plugin's output. Errors quote none of it, because it may contain a password.
 * @throws Error
 */
export function decodePluginAnswer(text: string, { apiVersion }: Pick<CredentialProvider, "apiVersion">): PluginAnswer {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("printed something that is not JSON");
  }
  const result = Answer.safeParse(value);
  if (!result.success) throw new Error("printed no CredentialProviderResponse");
  const { apiVersion: given, cacheKeyType = "", cacheDuration, auth } = result.data;
  if (given !== apiVersion) {
    const shown = given.startsWith(`${providerApi}/`) ? given : "another";
    throw new Error(`returned apiVersion ${shown} instead of ${apiVersion}`);
  }
  if (cacheKeyType !== "Image" && cacheKeyType !== "Registry" && cacheKeyType !== "Global") {
    throw new Error("did not return a valid cacheKeyType (Image, Registry or Global)");
  }
  const cacheMs = cacheDuration ? parseGoDuration(cacheDuration) : undefined;
  if (cacheDuration && cacheMs === undefined) throw new Error("returned a cacheDuration that is not a duration");
  const entries = Object.entries(auth ?? {}).map(([registry, { username = "", password = "" }]) => ({
    registry,
    credential: { username, password, email: "", identityToken: "" },
  }));
  return { entries, cacheKeyType, cacheMs };
}
