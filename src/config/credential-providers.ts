import * as z from "zod";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { type CredentialProvider, providerApi } from "../images/credential-provider.ts";
import { qualifiedNameProblem } from "../base/formats.ts";
import { goValues } from "../yaml/go-values.ts";
import { parseDocuments } from "../yaml/documents.ts";
import { durationProblem, parseGoDuration } from "../base/go-duration.ts";

const text = z.string();
const texts = z.array(text).nullish();
const Tokens = z.strictObject({
  serviceAccountTokenAudience: text.optional(),
  cacheType: text.optional(),
  requireServiceAccount: z.boolean().nullish(),
  requiredServiceAccountAnnotationKeys: texts,
  optionalServiceAccountAnnotationKeys: texts,
});
const Provider = z.strictObject({
  name: text.optional(),
  matchImages: texts,
  defaultCacheDuration: text.nullish(),
  apiVersion: text.optional(),
  args: texts,
  env: z.array(z.strictObject({ name: text, value: text })).nullish(),
  tokenAttributes: Tokens.nullish(),
});
const Config = z.strictObject({
  apiVersion: text,
  kind: z.literal("CredentialProviderConfig"),
  providers: z.array(Provider).nullish(),
});
type Provider = z.infer<typeof Provider>;

const configVersions = ["v1", "v1beta1", "v1alpha1"].map((version) => `kubelet.config.k8s.io/${version}`);
const providerVersions = ["v1", "v1alpha1", "v1beta1"].map((version) => `${providerApi}/${version}`);

/** A file of `--image-credential-provider-config`. */
export interface ProviderFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/**
 * The providers of all files, in their order. Strict, like upstream.
 * @throws PodwrightError (bad input) with all problems, in upstream's words
 */
export function decodeCredentialProviders(files: readonly ProviderFile[]): CredentialProvider[] {
  const providers = files.flatMap(decodeFile);
  const problems = providers.length === 0 ? ["providers: Required value: at least 1 item in plugins is required"] : [];
  const names = new Set<string>();
  for (const provider of providers) {
    const { name = "" } = provider;
    const isKnown = names.has(name);
    if (isKnown) problems.push(`duplicate provider name ${JSON.stringify(name)} found in configuration file(s)`);
    names.add(name);
    problems.push(...problemsOf(provider), ...tokenProblems(provider));
  }
  if (problems.length > 0) throw bad(`failed to validate credential provider config: ${problems.join("; ")}`);
  return providers.map(settingsOf);
}

function decodeFile({ path, bytes }: ProviderFile): Provider[] {
  const failed = (problem: string): PodwrightError => bad(`error decoding config ${JSON.stringify(path)}: ${problem}`);
  const { documents, errors } = parseDocuments(new TextDecoder().decode(bytes), path);
  const [error] = errors;
  if (error !== undefined) throw failed(error.message);
  const [document] = documents;
  if (document === undefined || documents.length > 1) throw failed("it is not a single CredentialProviderConfig");
  const result = Config.safeParse(goValues(Config, document.value));
  if (!result.success) {
    // Only fields are named: values of env may be secrets.
    const issues = result.error.issues.map((issue) => {
      const keys = issue.code === "unrecognized_keys" ? ` ${issue.keys.join(", ")}` : "";
      return `${issue.path.join(".") || "the file"}: ${issue.code.replaceAll("_", " ")}${keys}`;
    });
    throw failed(issues.join("; "));
  }
  const { apiVersion, providers } = result.data;
  if (!configVersions.includes(apiVersion)) throw failed(`apiVersion must be one of ${configVersions.join(", ")}`);
  const list = providers ?? [];
  if (apiVersion !== configVersions[0] && list.some(({ tokenAttributes }) => tokenAttributes)) {
    throw failed(`tokenAttributes needs apiVersion ${configVersions[0]}`);
  }
  return list;
}

function* problemsOf({ name = "", apiVersion = "", matchImages, defaultCacheDuration }: Provider): Iterable<string> {
  const invalid = (field: string, value: string, why: string): string =>
    `providers.${field}: Invalid value: ${JSON.stringify(value)}: ${why}`;
  if (name === "") yield "providers.name: Required value";
  if (name.includes("/")) yield invalid("name", name, "provider name cannot contain '/'");
  if (name.includes(" ")) yield invalid("name", name, "provider name cannot contain spaces");
  if (name === "." || name === "..") yield invalid("name", name, `provider name cannot be '${name}'`);
  if (apiVersion === "") yield "providers.apiVersion: Required value";
  else if (!providerVersions.includes(apiVersion)) {
    const supported = providerVersions.map((version) => JSON.stringify(version)).join(", ");
    yield `providers.apiVersion: Unsupported value: ${JSON.stringify(apiVersion)}: supported values: ${supported}`;
  }
  if ((matchImages ?? []).length === 0) {
    yield "providers.matchImages: Required value: at least 1 item in matchImages is required";
  }
  for (const pattern of matchImages ?? []) {
    if (pattern.includes("://") || /\s/u.test(pattern) || /^(\/|$)/u.test(pattern)) {
      yield invalid("matchImages", pattern, "match image is invalid: it is not a host with an optional port and path");
    }
  }
  const duration = defaultCacheDuration ?? "";
  const cacheMs = parseGoDuration(duration);
  if (duration === "") yield "providers.defaultCacheDuration: Required value";
  else if (cacheMs === undefined) yield invalid("defaultCacheDuration", duration, durationProblem(duration));
  else if (cacheMs < 0) yield invalid("defaultCacheDuration", duration, "must be greater than or equal to 0");
}

function* tokenProblems({ apiVersion, tokenAttributes }: Provider): Iterable<string> {
  if (!tokenAttributes) return;
  const at = "providers.tokenAttributes";
  const { serviceAccountTokenAudience = "", requireServiceAccount, cacheType = "" } = tokenAttributes;
  const required = tokenAttributes.requiredServiceAccountAnnotationKeys ?? [];
  const optional = tokenAttributes.optionalServiceAccountAnnotationKeys ?? [];
  if (serviceAccountTokenAudience === "") yield `${at}.serviceAccountTokenAudience: Required value`;
  if (requireServiceAccount === undefined || requireServiceAccount === null) {
    yield `${at}.requireServiceAccount: Required value`;
  }
  if (apiVersion !== providerVersions[0]) {
    yield `${at}: Forbidden: tokenAttributes is only supported for ${providerVersions[0]} API version`;
  }
  if (requireServiceAccount === false && required.length > 0) {
    yield `${at}.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`;
  }
  for (const [field, keys] of Object.entries({ required, optional })) {
    for (const [index, key] of keys.entries()) {
      const problem = qualifiedNameProblem(key.toLowerCase());
      const path = `${at}.${field}ServiceAccountAnnotationKeys`;
      if (problem !== undefined) yield `${path}: Invalid value: ${JSON.stringify(key)}: ${problem}`;
      if (keys.indexOf(key) < index) yield `${path}: Duplicate value: ${JSON.stringify(key)}`;
    }
  }
  const both = required.filter((key) => optional.includes(key));
  if (both.length > 0) {
    yield `${at}: Invalid value: [${both.join(" ")}]: annotation keys cannot be both required and optional`;
  }
  if (cacheType === "") {
    yield `${at}.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ServiceAccount, Token`;
  } else if (cacheType !== "ServiceAccount" && cacheType !== "Token") {
    yield `${at}.cacheType: Unsupported value: ${JSON.stringify(cacheType)}: supported values: "ServiceAccount", "Token"`;
  }
}

/** Expects a valid provider. */
function settingsOf(provider: Provider): CredentialProvider {
  const { name = "", matchImages, defaultCacheDuration, apiVersion = "", args, env, tokenAttributes } = provider;
  return {
    name,
    matchImages: matchImages ?? [],
    defaultCacheMs: parseGoDuration(defaultCacheDuration ?? "") ?? 0,
    apiVersion,
    args: args ?? [],
    env: Object.fromEntries((env ?? []).map((variable) => [variable.name, variable.value])),
    tokens: tokenAttributes
      ? {
          audience: tokenAttributes.serviceAccountTokenAudience ?? "",
          cacheType: tokenAttributes.cacheType === "Token" ? "Token" : "ServiceAccount",
          required: tokenAttributes.requireServiceAccount ?? true,
          requiredAnnotations: tokenAttributes.requiredServiceAccountAnnotationKeys ?? [],
          optionalAnnotations: tokenAttributes.optionalServiceAccountAnnotationKeys ?? [],
        }
      : undefined,
  };
}

function bad(message: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, message, { remedy: "see --image-credential-provider-config" });
}
