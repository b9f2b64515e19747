import type { ConfigMapContent, SecretContent } from "../../api/object-content.ts";
import type { Container, EnvVar } from "../../api/container.ts";
import type { PullAccount } from "../../images/credential-provider.ts";
import type { Pod, PodSpec } from "../../api/pod.ts";
import type { EnvVarSource, Volume } from "../../api/volume.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import { type EnvironmentFiles, findVariable } from "./environment-file.ts";
import { type DownwardApiInputs, fieldValue, resourceValue } from "./downward-api.ts";
import { expandParts, joinParts, type TextPart } from "./expansion.ts";
import { TextRoom } from "./text-room.ts";

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
 * The most that Linux gives a process, whatever its stack limit (three quarters of 8 MiB; a quarter of the limit, if
 * that is less), with which no container is refused that could run.
 */
const maxProcessBytes = 6 << 20;
/**
 * Commands of probes are made for each run, and very many may run at once. One string of a process has at most 128 KiB
 * anyway.
 */
const maxProbeCommandBytes = 256 << 10;

/** Of environment and arguments together. */
function processRoom(): TextRoom {
  return new TextRoom(
    maxProcessBytes,
    `a process has at most ${maxProcessBytes} bytes of environment, command and arguments`,
  );
}

/**
 * The container's environment in the order of its spec: `envFrom`, then `env`, then service variables that neither
 * sets. A later variable replaces an earlier one of the same name in place (upstream's order is random).
 * @throws ContainerConfigError when something required is missing; never includes a value
 */
export function makeEnvironment(pod: Pod, container: Container, inputs: EnvironmentInputs): EnvironmentVariable[] {
  const variables = new Variables();
  const services = new Map(inputs.serviceVariables.map(({ name, value }) => [name, value]));
  for (const source of container.envFrom ?? []) {
    for (const [key, value] of sourceEntries(source, pod, inputs.objects)) {
      variables.set((source.prefix ?? "") + key, [value]);
    }
  }
  const lookup = (name: string): TextPart | undefined => variables.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    const value = variableValue(variable, pod, container, inputs, lookup);
    if (value !== undefined) variables.set(variable.name, value);
  }
  for (const [name, value] of services) if (variables.get(name) === undefined) variables.set(name, [value]);
  return variables.all().map(checked);
}

/**
 * The container's command and arguments with `$(VAR)` expanded from its environment.
 * @throws ContainerConfigError when they are longer than a process's may be, or a variable has bytes that are not UTF-8:
 *   CRI carries commands as text
 */
export function expandCommand(
  container: Container,
  environment: readonly EnvironmentVariable[],
): { readonly command: string[]; readonly args: string[] } {
  const values = new Map(environment.map(({ name, value }) => [name, value]));
  const room = processRoom();
  for (const { name, value } of environment) room.take([name, value], `environment variable ${name}`);
  const expandText = (text: string): string => {
    const parts = expandParts(text, (name) => values.get(name));
    room.take(parts, `the command of container ${container.name}`);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(joinParts(parts));
    } catch (cause) {
      const problem = `a command or argument of container ${container.name} is not UTF-8 after variable expansion`;
      throw new ContainerConfigError(problem, { cause });
    }
  };
  return { command: (container.command ?? []).map(expandText), args: (container.args ?? []).map(expandText) };
}

/**
 * A probe's command: only variables with a plain `value` are expanded, not recursively, as upstream does.
 * @throws ContainerConfigError when it gets too long
 */
export function expandStaticCommand(command: readonly string[], env: readonly EnvVar[]): string[] {
  const values = new Map(env.map(({ name, value }) => [name, value ?? ""]));
  const room = new TextRoom(maxProbeCommandBytes, `the command of a probe has at most ${maxProbeCommandBytes} bytes`);
  return command.map((text) => {
    const parts = expandParts(text, (name) => values.get(name));
    room.take(parts, "the expanded command");
    return parts.join("");
  });
}

/** A container's variables by name, within what a process may have. */
class Variables {
  readonly #values = new Map<string, Uint8Array>();
  readonly #room = processRoom();

  get(name: string): Uint8Array | undefined {
    return this.#values.get(name);
  }

  set(name: string, value: readonly TextPart[]): void {
    const before = this.#values.get(name);
    if (before !== undefined) this.#room.giveBack([name, before]);
    this.#room.take([name, ...value], `environment variable ${name}`);
    this.#values.set(name, joinParts(value));
  }

  all(): EnvironmentVariable[] {
    return [...this.#values].map(([name, value]) => ({ name, value }));
  }
}

type EnvFromSource = NonNullable<Container["envFrom"]>[number];

function sourceEntries(source: EnvFromSource, pod: Pod, objects: ObjectLookup): Iterable<readonly [string, TextPart]> {
  if (source.configMapRef !== undefined) return configMap(source.configMapRef, pod, objects)?.data ?? [];
  if (source.secretRef !== undefined) return secret(source.secretRef, pod, objects)?.data ?? [];
  return [];
}

/** Undefined when the variable is not set: its source is optional and missing. */
function variableValue(
  variable: EnvVar,
  pod: Pod,
  container: Container,
  inputs: EnvironmentInputs,
  lookup: (name: string) => TextPart | undefined,
): readonly TextPart[] | undefined {
  const { value, valueFrom } = variable;
  if (value) return expandParts(value, lookup);
  if (valueFrom === undefined) return [];
  if (valueFrom.fieldRef !== undefined) return [fieldValue(valueFrom.fieldRef, pod, inputs)];
  if (valueFrom.resourceFieldRef !== undefined) {
    return [resourceValue(valueFrom.resourceFieldRef, pod, container, inputs)];
  }
  const found =
    valueFrom.fileKeyRef === undefined
      ? keyValue(valueFrom, pod, inputs.objects)
      : fileValue(valueFrom.fileKeyRef, inputs.environmentFiles);
  return found === undefined ? undefined : [found];
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

function keyValue(
  { configMapKeyRef, secretKeyRef }: EnvVarSource,
  pod: Pod,
  objects: ObjectLookup,
): TextPart | undefined {
  const { namespace } = pod.metadata;
  if (configMapKeyRef !== undefined) {
    const content = configMap(configMapKeyRef, pod, objects);
    const value = content?.data.get(configMapKeyRef.key);
    if (value !== undefined || configMapKeyRef.optional) return value;
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
  return "";
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

/** Rejects what no process can be given: the kernel ends names at `=`, and names and values at a zero byte. */
function checked(variable: EnvironmentVariable): EnvironmentVariable {
  const { name, value } = variable;
  if (name === "" || name.includes("=") || name.includes("\0")) {
    throw new ContainerConfigError(`${JSON.stringify(name)} is not a valid environment variable name`);
  }
  if (value.includes(0)) throw new ContainerConfigError(`the value of environment variable ${name} holds a zero byte`);
  return variable;
}
