import { dirname, isAbsolute, resolve } from "node:path/posix";
import { parse } from "yaml";
import { z } from "zod";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { parseProxy } from "./proxy.ts";
import { tokenProblem } from "./token.ts";

/** A text of the kubeconfig itself, or a file that is read again when it changes. */
export type TextSource =
  | { readonly kind: "inline"; readonly text: string }
  | { readonly kind: "file"; readonly path: string };

/** A program that hands out credentials (client-go credential plugins, client.authentication.k8s.io). */
export interface ExecPlugin {
  readonly apiVersion: "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string | undefined;
  /** spec.cluster of the plugin's input, where it asks for it, but for certificate-authority-data. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined;
}

/** Who asks. */
export interface KubeUser {
  readonly certificate?: { readonly cert: TextSource; readonly key: TextSource };
  readonly token?: TextSource;
  readonly exec?: ExecPlugin;
}

/** A cluster and who asks there: all that a connection needs. */
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
const Exec = z.looseObject({
  apiVersion: OptionalText,
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string() })).nullish(),
  installHint: OptionalText,
  provideClusterInfo: z.boolean().nullish(),
  interactiveMode: OptionalText,
});
const User = z.looseObject({
  "client-certificate": OptionalText,
  "client-certificate-data": OptionalText,
  "client-key": OptionalText,
  "client-key-data": OptionalText,
  token: OptionalText,
  tokenFile: OptionalText,
  exec: Exec.nullish(),
});
const Config = z.looseObject({
  "current-context": OptionalText,
  clusters: Named,
  contexts: Named,
  users: Named,
});
const Context = z.looseObject({ cluster: z.string(), user: OptionalText });

/** What a user may have that podwright has no use for: better said than found out from a 401. */
const refusedUserFields: Readonly<Record<string, string>> = {
  username: "basic authentication is gone since Kubernetes 1.19; use a certificate or a token",
  password: "basic authentication is gone since Kubernetes 1.19; use a certificate or a token",
  "auth-provider": "auth providers are gone since Kubernetes 1.26; use exec",
  as: "podwright acts for itself and impersonates nobody",
  "as-uid": "podwright acts for itself and impersonates nobody",
  "as-groups": "podwright acts for itself and impersonates nobody",
  "as-user-extra": "podwright acts for itself and impersonates nobody",
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
  // As client-go: nobody's credentials go over the wire in clear.
  if (!access.server.startsWith("https:")) return { ...access, user: {} };
  return {
    ...access,
    user: userOf(user, cluster, directory, (field, problem) => refuse(`${userField}.${field}`, problem)),
  };
}

function parsedYaml(text: string, refuse: Refuse): unknown {
  try {
    return parse(text, { maxAliasCount: 100 }) ?? {};
  } catch (error) {
    // The parser shows the line, which may be a secret: only what is wrong and where.
    return refuse("", `is not YAML: ${errorMessage(error).split("\n")[0]?.replace(/:$/u, "") ?? ""}`);
  }
}

function decoded<T>(schema: z.ZodType<T>, value: unknown, field: string, refuse: Refuse): T {
  if (value === undefined) return refuse(field, "not found");
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const parts = [...(field === "" ? [] : [field]), ...(issue?.path.map(String) ?? [])];
  return refuse(parts.join("."), issue?.code === "invalid_type" ? `expected ${issue.expected}` : "does not fit");
}

function named(list: z.infer<typeof Named>, name: string, part: string): unknown {
  return list?.find((item) => item.name === name)?.[part];
}

/** @param hasCertificate whether the user has one: nobody can show it to a server without TLS */
function clusterAccess(
  cluster: z.infer<typeof Cluster>,
  hasCertificate: boolean,
  directory: string,
  refuse: Refuse,
): Omit<KubeAccess, "user"> {
  const { server, "insecure-skip-tls-verify": insecure } = cluster;
  if (!server) return refuse("server", "Required value: the address of the API server");
  const ca = source(cluster["certificate-authority-data"], cluster["certificate-authority"], directory, (problem) =>
    refuse("certificate-authority-data", problem),
  );
  // An address without a scheme, as client-go's own rules have it.
  const secure = hasCertificate || ca !== undefined || insecure;
  const url = URL.parse(server.includes("://") ? server : `${secure ? "https" : "http"}://${server}`);
  if (url === null || !/^https?:$/u.test(url.protocol)) return refuse("server", "is no http or https URL");
  if (url.username !== "" || url.search !== "") return refuse("server", "may not hold a user or a query");
  const proxyUrl = cluster["proxy-url"];
  const proxy = proxyUrl ? parseProxy(proxyUrl) : undefined;
  if (typeof proxy === "string") return refuse("proxy-url", proxy);
  if (insecure && ca !== undefined) {
    return refuse("insecure-skip-tls-verify", "a certificate authority is of no use with it: leave one of them out");
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
  const cert = source(user["client-certificate-data"], user["client-certificate"], directory, (problem) =>
    refuse("client-certificate-data", problem),
  );
  const key = source(user["client-key-data"], user["client-key"], directory, (problem) =>
    refuse("client-key-data", problem),
  );
  if (cert !== undefined && key === undefined) return refuse("client-key", "Required value: the certificate's key");
  if (cert === undefined && key !== undefined) return refuse("client-certificate", "Required value: there is a key");
  const token = tokenOf(user, directory, refuse);
  const exec = user.exec && execPlugin(user.exec, cluster, directory, refuse);
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

function execPlugin(
  exec: z.infer<typeof Exec>,
  cluster: z.infer<typeof Cluster>,
  directory: string,
  refuse: Refuse,
): ExecPlugin {
  const { apiVersion } = exec;
  if (apiVersion !== "client.authentication.k8s.io/v1" && apiVersion !== "client.authentication.k8s.io/v1beta1") {
    return refuse("exec.apiVersion", "expected client.authentication.k8s.io/v1 or v1beta1");
  }
  if (exec.interactiveMode === "Always") {
    return refuse("exec.interactiveMode", "Always: nobody is there to be asked; use Never or IfAvailable");
  }
  const config = cluster.extensions?.find(({ name }) => name === "client.authentication.k8s.io/exec")?.extension;
  return {
    apiVersion,
    // As in client-go: a name is searched for in PATH, a path with a slash starts at the file.
    command: exec.command.includes("/") ? absolute(exec.command, directory) : exec.command,
    args: exec.args ?? [],
    env: Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value])),
    installHint: exec.installHint || undefined,
    cluster: exec.provideClusterInfo
      ? {
          server: cluster.server,
          ...(cluster["tls-server-name"] && { "tls-server-name": cluster["tls-server-name"] }),
          ...(cluster["insecure-skip-tls-verify"] && { "insecure-skip-tls-verify": true }),
          ...(cluster["proxy-url"] && { "proxy-url": cluster["proxy-url"] }),
          ...(config !== undefined && { config }),
        }
      : undefined,
  };
}

/** Data (base64) wins over a file, as in client-go. */
function source(
  data: string | null | undefined,
  path: string | null | undefined,
  directory: string,
  refuse: (problem: string) => never,
): TextSource | undefined {
  if (data) {
    const text = Buffer.from(data, "base64").toString("utf8");
    if (!text.includes("-----BEGIN ")) return refuse("is not PEM in base64");
    return { kind: "inline", text };
  }
  return path ? fileSource(path, directory) : undefined;
}

function fileSource(path: string, directory: string): TextSource {
  return { kind: "file", path: absolute(path, directory) };
}

function absolute(path: string, directory: string): string {
  return isAbsolute(path) ? path : resolve(directory, path);
}
