import { dirname, isAbsolute, resolve } from "node:path/posix";
import * as z from "zod";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { goValues } from "../yaml/go-values.ts";
import { parseDocuments } from "../yaml/documents.ts";
import { ExecConfig, execPlugin, type ExecPlugin } from "./exec-plugin.ts";
import { parseProxy } from "./proxy.ts";
import { tokenProblem } from "./token.ts";

/** A text of the kubeconfig itself, or a file that is read again when it changes. */
export type TextSource =
  | { readonly kind: "inline"; readonly text: string }
  | { readonly kind: "file"; readonly path: string };

/** The user. */
export interface KubeUser {
  readonly certificate?: { readonly cert: TextSource; readonly key: TextSource };
  readonly token?: TextSource;
  readonly exec?: ExecPlugin;
}

/** A cluster and its user: everything that a connection needs. */
export interface KubeAccess {
  /** `https://host:port` and perhaps a path, without a slash at its end. */
  readonly server: string;
  /** PEM; undefined: the system's. */
  readonly ca: TextSource | undefined;
  /** Name that the server's certificate is for, if not the server's own. */
  readonly serverName: string | undefined;
  /** Whatever certificate the server shows is taken. */
  readonly insecure: boolean;
  /** Of the proxy to the server, as it stands in the kubeconfig: perhaps with a password. */
  readonly proxyUrl?: string;
  readonly user: KubeUser;
}

const OptionalText = z.string().nullish();
const Named = z.array(z.looseObject({ name: z.string() })).nullish();

const Cluster = z.looseObject({
  server: OptionalText,
  "certificate-authority": OptionalText,
  "certificate-authority-data": OptionalText,
  "insecure-skip-tls-verify": z.boolean().nullish(),
  "tls-server-name": OptionalText,
  "proxy-url": OptionalText,
  extensions: z.array(z.looseObject({ name: z.string(), extension: z.unknown() })).nullish(),
});
const User = z.looseObject({
  "client-certificate": OptionalText,
  "client-certificate-data": OptionalText,
  "client-key": OptionalText,
  "client-key-data": OptionalText,
  token: OptionalText,
  tokenFile: OptionalText,
  exec: ExecConfig.nullish(),
});
const Config = z.looseObject({
  apiVersion: OptionalText,
  kind: OptionalText,
  "current-context": OptionalText,
  clusters: Named,
  contexts: Named,
  users: Named,
});
const Context = z.looseObject({ cluster: z.string(), user: OptionalText });

/** What a user may have that podwright has no use for: better said than found out from a 401. */
const refusedUserFields: Readonly<Record<string, string>> = {
  username: "basic authentication was removed in Kubernetes 1.19; use a certificate or a token",
  password: "basic authentication was removed in Kubernetes 1.19; use a certificate or a token",
  "auth-provider": "auth providers were removed in Kubernetes 1.26; use exec",
  as: "impersonation is not supported",
  "as-uid": "impersonation is not supported",
  "as-groups": "impersonation is not supported",
  "as-user-extra": "impersonation is not supported",
};

/** Throws with the file and the field; never shows a value, which may be a secret. */
type Refuse = (field: string, problem: string) => never;

/**
 * Reads a kubeconfig: its current context. Relative paths start at the file's directory. Undefined for one without
 * clusters and contexts, which stands for the pod's own service account, as in client-go. Pure.
 * @param path of the file, absolute, for messages and relative paths
 * @throws PodwrightError (bad input) naming the field
 */
export function decodeKubeconfig(text: string, path: string): KubeAccess | undefined {
  const refuse: Refuse = (field, problem) => {
    throw new PodwrightError(ExitCode.badInput, `kubeconfig ${path}: ${field === "" ? "" : `${field}: `}${problem}`);
  };
  const config = decoded(Config, parsedYaml(text, refuse), "", refuse);
  if ((config.apiVersion || "v1") !== "v1") refuse("apiVersion", "expected v1");
  if ((config.kind || "Config") !== "Config") refuse("kind", "expected Config");
  for (const list of ["clusters", "contexts", "users"] as const) refuseTwins(list, config[list] ?? [], refuse);
  if (!config.clusters?.[0] && !config.contexts?.[0]) return undefined;
  const current = config["current-context"];
  if (!current) refuse("current-context", "Required value: the name of a context");
  const context = decoded(Context, named(config.contexts, current, "context"), `contexts[${current}].context`, refuse);
  const clusterField = `clusters[${context.cluster}].cluster`;
  const cluster = decoded(Cluster, named(config.clusters, context.cluster, "cluster"), clusterField, refuse);
  const userField = `users[${context.user ?? ""}].user`;
  const user = context.user ? decoded(User, named(config.users, context.user, "user"), userField, refuse) : {};
  const directory = dirname(path);
  const hasCertificate = Boolean(user["client-certificate"] || user["client-certificate-data"]);
  const access = clusterAccess(cluster, hasCertificate, directory, (field, problem) =>
    refuse(`${clusterField}.${field}`, problem),
  );
  // As client-go: credentials are never sent in clear.
  if (!access.server.startsWith("https:")) return { ...access, user: {} };
  return {
    ...access,
    user: userOf(user, cluster, directory, (field, problem) => refuse(`${userField}.${field}`, problem)),
  };
}

/** Readers differ in which of two equal names they use. */
function refuseTwins(list: string, items: readonly { readonly name: string }[], refuse: Refuse): void {
  const names = items.map(({ name }) => name);
  const twin = names.find((name, index) => names.indexOf(name) !== index);
  if (twin !== undefined) refuse(`${list}[${twin}]`, "duplicate name");
}

/** As client-go: the first document counts, and of a repeated key the last. */
function parsedYaml(text: string, refuse: Refuse): unknown {
  const { documents, errors } = parseDocuments(text, "", {
    onRepeatedKey: () => undefined,
    onLaterError: () => undefined,
  });
  const [error] = errors;
  const { line = 0, column = 0 } = error?.position ?? {};
  const place = line === 0 ? "" : ` at line ${line}, column ${column}`;
  if (error !== undefined) refuse("", `is not YAML${place}: ${error.detail}`);
  return documents[0]?.value ?? {};
}

function decoded<T>(schema: z.ZodType<T>, value: unknown, field: string, refuse: Refuse): T {
  if (value === undefined) return refuse(field, "not found");
  const result = schema.safeParse(goValues(schema, value));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const parts = [...(field === "" ? [] : [field]), ...(issue?.path.map(String) ?? [])];
  return refuse(parts.join("."), issue?.code === "invalid_type" ? `expected ${issue.expected}` : "does not fit");
}

function named(list: z.infer<typeof Named>, name: string, part: string): unknown {
  return list?.find((item) => item.name === name)?.[part];
}

/** @param hasCertificate whether the user has one: it is useless without TLS */
function clusterAccess(
  cluster: z.infer<typeof Cluster>,
  hasCertificate: boolean,
  directory: string,
  refuse: Refuse,
): Omit<KubeAccess, "user"> {
  const { server, "insecure-skip-tls-verify": insecure } = cluster;
  if (!server) return refuse("server", "Required value: the address of the API server");
  const ca = source(cluster, "certificate-authority", directory, refuse);
  // An address without a scheme, as client-go's own rules have it.
  const secure = hasCertificate || ca !== undefined || insecure;
  const url = URL.parse(server.includes("://") ? server : `${secure ? "https" : "http"}://${server}`);
  if (url === null || !/^https?:$/u.test(url.protocol)) return refuse("server", "is not an http or https URL");
  if (url.username !== "" || url.search !== "") return refuse("server", "must not hold a user or a query");
  const proxyUrl = cluster["proxy-url"];
  const proxy = proxyUrl ? parseProxy(proxyUrl) : undefined;
  if (typeof proxy === "string") return refuse("proxy-url", proxy);
  if (insecure && ca !== undefined) {
    return refuse("insecure-skip-tls-verify", "conflicts with a certificate authority: remove one of them");
  }
  return {
    server: `${url.origin}${url.pathname.replace(/\/+$/u, "")}`,
    ca,
    serverName: cluster["tls-server-name"] || undefined,
    insecure: insecure ?? false,
    ...(proxyUrl && { proxyUrl }),
  };
}

function userOf(
  user: z.infer<typeof User>,
  cluster: z.infer<typeof Cluster>,
  directory: string,
  refuse: Refuse,
): KubeUser {
  for (const [field, problem] of Object.entries(refusedUserFields)) if (user[field]) return refuse(field, problem);
  const cert = source(user, "client-certificate", directory, refuse);
  const key = source(user, "client-key", directory, refuse);
  if (cert !== undefined && key === undefined) return refuse("client-key", "Required value: the certificate's key");
  if (cert === undefined && key !== undefined) return refuse("client-certificate", "Required value: there is a key");
  const token = tokenOf(user, directory, refuse);
  const exec =
    user.exec && execPlugin(user.exec, cluster, directory, (field, problem) => refuse(`exec.${field}`, problem));
  // As in client-go: beside a token or certificate a plugin is never run.
  const runs = token === undefined && cert === undefined;
  return {
    ...(cert !== undefined && key !== undefined && { certificate: { cert, key } }),
    ...(token !== undefined && { token }),
    ...(exec && runs && { exec }),
  };
}

function tokenOf(
  { token, tokenFile }: z.infer<typeof User>,
  directory: string,
  refuse: Refuse,
): TextSource | undefined {
  if (tokenFile) return fileSource(tokenFile, directory);
  if (!token) return undefined;
  const text = token.trim();
  const problem = tokenProblem(text);
  return problem === undefined ? { kind: "inline", text } : refuse("token", problem);
}

/** @param field of the file's path; beside it may be its data in base64. With both, client-go refuses to begin, too. */
function source(
  fields: Readonly<Record<string, unknown>>,
  field: "certificate-authority" | "client-certificate" | "client-key",
  directory: string,
  refuse: Refuse,
): TextSource | undefined {
  const [data, path] = [fields[`${field}-data`], fields[field]];
  if (data && path) return refuse(field, `conflicts with ${field}-data: remove one of them`);
  if (typeof data === "string" && data !== "") {
    const text = Buffer.from(data, "base64").toString("utf8");
    if (!text.includes("-----BEGIN ")) return refuse(`${field}-data`, "is not PEM in base64");
    return { kind: "inline", text };
  }
  return typeof path === "string" && path !== "" ? fileSource(path, directory) : undefined;
}

function fileSource(path: string, directory: string): TextSource {
  return { kind: "file", path: absolute(path, directory) };
}

function absolute(path: string, directory: string): string {
  return isAbsolute(path) ? path : resolve(directory, path);
}
