import type { ConfigMapContent, SecretContent } from "../../api/object-content.ts";
import type { Container, EnvVar } from "../../api/container.ts";
import type { PullAccount } from "../../images/credential-provider.ts";
import type { Pod, PodSpec } from "../../api/pod.ts";
import type { EnvVarSource, Volume } from "../../api/volume.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import { type EnvironmentFiles, findVariable } from "./environment-file.ts";
import { type DownwardApiInputs, fieldValue, resourceValue } from "./downward-api.ts";
import { expand, expandParts } from "./expansion.ts";

/** One environment variable. The value is bytes: secrets need not be text. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly value: Uint8Array;
}

/** The objects that pods refer to, as currently known. Optional members exist in clusters. */
export interface ObjectLookup {
  /** Undefined: not found. */
  configMap(namespace: string, name: string): ConfigMapContent | undefined;
  /** Undefined: not found. */
  secret(namespace: string, name: string): SecretContent | undefined;
  /**
   * A token of the pod's service account, a secret, or why there is none.
   * @throws NotKnownYetError while the API server has not responded
   */
  serviceAccountToken?(
    pod: Pod,
    source: {
      readonly audience?: string | undefined;
      readonly expirationSeconds?: number | undefined;
      readonly path: string;
    },
  ): { readonly token: string } | { readonly problem: string };
  /** The pod's service account; undefined: it has none. */
  account?(pod: Pod): PullAccount | undefined;
  /** The runtime handler of a RuntimeClass; undefined: not found. */
  runtimeHandler?(runtimeClass: string): string | undefined;
  /** Service environment variables. */
  serviceVariables?(pod: Pod): readonly { readonly name: string; readonly value: string }[];
  /** Resolves once the needed objects of the pod are known, or after a timeout. Rejects with the signal's reason. */
  settle?(pod: Pod, needs: NeededObjects, signal: AbortSignal): Promise<void>;
  /** Renews the pod's tokens in the background: the pod is synced when they have arrived. */
  renew?(pod: Pod): void;
}

/** What a start requires: nothing else of its pod delays it. */
export interface NeededObjects {
  /** The part of the pod's spec whose ConfigMaps, Secrets and runtime class must be known. */
  readonly spec: Partial<PodSpec>;
  /** Volumes that need their tokens. */
  readonly tokensOf?: readonly Volume[];
  /** Services as the API server has them, or as last known. */
  readonly services?: "live" | "remembered";
}

export interface EnvironmentInputs extends DownwardApiInputs {
  readonly objects: ObjectLookup;
  /** From readEnvironmentFiles. */
  readonly environmentFiles: EnvironmentFiles;
  /** Variables for the services of the pod's namespace; none without a cluster. */
  readonly serviceVariables: readonly { readonly name: string; readonly value: string }[];
}

/**
 * Maximum size of an expanded value: no process can be started with a larger one (the kernel's limit is 128 KiB), and
 * nested references would grow without bound.
 */
const maxExpandedBytes = 1 << 20;

const encoder = new TextEncoder();

/**
 * The container's environment in the order of its spec: `envFrom`, then `env`, then service variables that neither
 * sets. A later variable replaces an earlier one of the same name in place (upstream's order is random).
 * @throws ContainerConfigError when something required is missing; never includes a value
 */
export function makeEnvironment(pod: Pod, container: Container, inputs: EnvironmentInputs): EnvironmentVariable[] {
  const variables = new Map<string, Uint8Array>();
  const services = new Map(inputs.serviceVariables.map(({ name, value }) => [name, encoder.encode(value)]));
  for (const source of container.envFrom ?? []) {
    for (const [key, value] of sourceEntries(source, pod, inputs.objects)) {
      variables.set((source.prefix ?? "") + key, value);
    }
  }
  const lookup = (name: string): Uint8Array | undefined => variables.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    const value = variableValue(variable, pod, container, inputs, lookup);
    if (value !== undefined) variables.set(variable.name, value);
  }
  for (const [name, value] of services) if (!variables.has(name)) variables.set(name, value);
  return [...variables].map(([name, value]) => checked({ name, value }));
}

/**
 * The container's command and arguments with `$(VAR)` expanded from its environment.
 * @throws ContainerConfigError when a variable has bytes that are not UTF-8: CRI carries commands as text
 */
export function expandCommand(
  container: Container,
  environment: readonly EnvironmentVariable[],
): { readonly command: string[]; readonly args: string[] } {
  const values = new Map(environment.map(({ name, value }) => [name, value]));
  const expandText = (text: string): string => {
    const bytes = expandBytes(text, (name) => values.get(name), "the command");
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (cause) {
      const problem = `a command or argument of container ${container.name} is not UTF-8 after variable expansion`;
      throw new ContainerConfigError(problem, { cause });
    }
  };
  return { command: (container.command ?? []).map(expandText), args: (container.args ?? []).map(expandText) };
}

/** A probe's or hook's command: only variables with a plain `value` are expanded, not recursively, as upstream does. */
export function expandStaticCommand(command: readonly string[], env: readonly EnvVar[]): string[] {
  const values = new Map(env.map(({ name, value }) => [name, value ?? ""]));
  return command.map((text) => expand(text, (name) => values.get(name)));
}

type EnvFromSource = NonNullable<Container["envFrom"]>[number];

function sourceEntries(
  source: EnvFromSource,
  pod: Pod,
  objects: ObjectLookup,
): Iterable<readonly [string, Uint8Array]> {
  if (source.configMapRef !== undefined) {
    const data = configMap(source.configMapRef, pod, objects)?.data ?? new Map<string, string>();
    return [...data].map(([key, value]) => [key, encoder.encode(value)] as const);
  }
  if (source.secretRef !== undefined) return secret(source.secretRef, pod, objects)?.data ?? [];
  return [];
}

/** Undefined when the variable is not set: its source is optional and missing. */
function variableValue(
  variable: EnvVar,
  pod: Pod,
  container: Container,
  inputs: EnvironmentInputs,
  lookup: (name: string) => Uint8Array | undefined,
): Uint8Array | undefined {
  const { name, value, valueFrom } = variable;
  if (value) return expandBytes(value, lookup, `environment variable ${name}`);
  if (valueFrom === undefined) return new Uint8Array();
  if (valueFrom.fieldRef !== undefined) return encoder.encode(fieldValue(valueFrom.fieldRef, pod, inputs));
  if (valueFrom.resourceFieldRef !== undefined) {
    return encoder.encode(resourceValue(valueFrom.resourceFieldRef, pod, container, inputs));
  }
  if (valueFrom.fileKeyRef !== undefined) return fileValue(valueFrom.fileKeyRef, inputs.environmentFiles);
  return keyValue(valueFrom, pod, inputs.objects);
}

function fileValue(
  { volumeName, path, key, optional }: NonNullable<EnvVarSource["fileKeyRef"]>,
  files: EnvironmentFiles,
): Uint8Array | undefined {
  const content = files(volumeName, path);
  const value = content && findVariable(content, key);
  if (value !== undefined || optional) return value;
  const file = `file ${JSON.stringify(path)} of volume ${JSON.stringify(volumeName)}`;
  const problem = content === undefined ? `${file} not found` : `environment variable key ${key} not found in ${file}`;
  throw new ContainerConfigError(problem);
}

function keyValue({ configMapKeyRef, secretKeyRef }: EnvVarSource, pod: Pod, objects: ObjectLookup) {
  const { namespace } = pod.metadata;
  if (configMapKeyRef !== undefined) {
    const content = configMap(configMapKeyRef, pod, objects);
    const value = content?.data.get(configMapKeyRef.key);
    if (value !== undefined) return encoder.encode(value);
    if (configMapKeyRef.optional) return undefined;
    throw new ContainerConfigError(
      `couldn't find key ${configMapKeyRef.key} in ConfigMap ${namespace}/${configMapKeyRef.name ?? ""}`,
    );
  }
  if (secretKeyRef !== undefined) {
    const value = secret(secretKeyRef, pod, objects)?.data.get(secretKeyRef.key);
    if (value !== undefined || secretKeyRef.optional) return value;
    throw new ContainerConfigError(
      `couldn't find key ${secretKeyRef.key} in Secret ${namespace}/${secretKeyRef.name ?? ""}`,
    );
  }
  return new Uint8Array();
}

interface ObjectReference {
  readonly name?: string | undefined;
  readonly optional?: boolean | undefined;
}

function configMap(reference: ObjectReference, pod: Pod, objects: ObjectLookup): ConfigMapContent | undefined {
  const { name = "", optional } = reference;
  const found = objects.configMap(pod.metadata.namespace, name);
  if (found === undefined && !optional) throw new ContainerConfigError(`configmap ${JSON.stringify(name)} not found`);
  return found;
}

function secret(reference: ObjectReference, pod: Pod, objects: ObjectLookup): SecretContent | undefined {
  const { name = "", optional } = reference;
  const found = objects.secret(pod.metadata.namespace, name);
  if (found === undefined && !optional) throw new ContainerConfigError(`secret ${JSON.stringify(name)} not found`);
  return found;
}

function expandBytes(text: string, lookup: (name: string) => Uint8Array | undefined, subject: string): Uint8Array {
  const parts = expandParts(text, lookup);
  const lengths = parts.reduce((sum, part) => sum + part.length, 0);
  if (parts.length > 1 && lengths > maxExpandedBytes) {
    throw new ContainerConfigError(`${subject} exceeds ${maxExpandedBytes} bytes after variable expansion`);
  }
  return concatenate(parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part)));
}

function concatenate(pieces: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    result.set(piece, offset);
    offset += piece.length;
  }
  return result;
}

/** Rejects what no process can be given: the kernel ends names at `=`, and names and values at a zero byte. */
function checked(variable: EnvironmentVariable): EnvironmentVariable {
  const { name, value } = variable;
  if (name === "" || name.includes("=") || name.includes("\0")) {
    throw new ContainerConfigError(`${JSON.stringify(name)} is not a valid environment variable name`);
  }
  if (value.includes(0)) throw new ContainerConfigError(`the value of environment variable ${name} holds a zero byte`);
  return variable;
}
