import { isAbsolute, resolve } from "node:path/posix";
import * as z from "zod";
import { printable } from "../journal/text.ts";

/** A program that hands out credentials (client-go credential plugins, client.authentication.k8s.io). */
export interface ExecPlugin {
  readonly apiVersion: "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string | undefined;
  /** spec.cluster of the plugin's input, if requested, except certificate-authority-data. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined;
}

const OptionalText = z.string().nullish();

/** users[].user.exec of a kubeconfig. */
export const ExecConfig = z.looseObject({
  apiVersion: OptionalText,
  command: OptionalText,
  args: z.array(z.string()).nullish(),
  env: z.array(z.looseObject({ name: OptionalText, value: OptionalText })).nullish(),
  installHint: OptionalText,
  provideClusterInfo: z.boolean().nullish(),
  interactiveMode: OptionalText,
});

/** The cluster information passed to its plugin. */
export interface PluginCluster {
  readonly server?: string | null | undefined;
  readonly "tls-server-name"?: string | null | undefined;
  readonly "insecure-skip-tls-verify"?: boolean | null | undefined;
  readonly "proxy-url"?: string | null | undefined;
  readonly extensions?: readonly { readonly name: string; readonly extension: unknown }[] | null | undefined;
}

const extensionName = "client.authentication.k8s.io/exec";

/** The plugin that a kubeconfig names, by client-go's rules (validateAuthInfo). Pure. */
export function execPlugin(
  exec: z.infer<typeof ExecConfig>,
  cluster: PluginCluster,
  directory: string,
  refuse: (field: string, problem: string) => never,
): ExecPlugin {
  const { apiVersion, command, interactiveMode } = exec;
  if (!command) return refuse("command", "Required value: the credential plugin's executable");
  if (apiVersion !== "client.authentication.k8s.io/v1" && apiVersion !== "client.authentication.k8s.io/v1beta1") {
    return refuse("apiVersion", "expected client.authentication.k8s.io/v1 or v1beta1");
  }
  // v1beta1 has a default, IfAvailable.
  if (!interactiveMode && apiVersion === "client.authentication.k8s.io/v1") {
    return refuse("interactiveMode", "must be specified to use the exec authentication plugin: Never or IfAvailable");
  }
  if (interactiveMode === "Always") {
    return refuse("interactiveMode", "Always: a node has no terminal to ask at; use Never or IfAvailable");
  }
  if (interactiveMode && interactiveMode !== "Never" && interactiveMode !== "IfAvailable") {
    return refuse("interactiveMode", "expected Never or IfAvailable");
  }
  const env = (exec.env ?? []).map(({ name, value }): [string, string] => {
    return name ? [name, value ?? ""] : refuse("env", "each variable needs a name");
  });
  return {
    apiVersion,
    // As in client-go: a name is searched for in PATH, a path with a slash starts at the file.
    command: command.includes("/") && !isAbsolute(command) ? resolve(directory, command) : command,
    args: exec.args ?? [],
    env: Object.fromEntries(env),
    installHint: exec.installHint ? printable(exec.installHint) : undefined,
    cluster: exec.provideClusterInfo ? toldCluster(cluster) : undefined,
  };
}

function toldCluster(cluster: PluginCluster): Readonly<Record<string, unknown>> {
  const config = cluster.extensions?.find(({ name }) => name === extensionName)?.extension;
  return {
    server: cluster.server,
    ...(cluster["tls-server-name"] && { "tls-server-name": cluster["tls-server-name"] }),
    ...(cluster["insecure-skip-tls-verify"] && { "insecure-skip-tls-verify": true }),
    ...(cluster["proxy-url"] && { "proxy-url": cluster["proxy-url"] }),
    ...(config !== undefined && { config }),
  };
}
