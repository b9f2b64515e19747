import { isAbsolute, join, resolve } from "node:path/posix";
import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Network } from "../ports/network.ts";
import { decodeManifests, maxManifestBytes, tooBig, type DecodedManifest } from "./decode.ts";
import { displayUrl, requestTimeoutMs } from "./http-source.ts";
import { ManifestError, type Origin } from "../yaml/manifest-error.ts";
import type { FieldError } from "./field-errors.ts";
import { duplicateErrors, furtherErrors, objectName, prepareManifests } from "./prepare.ts";
import { priorityErrors, priorityWarnings } from "./priority-class.ts";

export interface LoadDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly network: Pick<Network, "httpGet">;
  /** What relative paths are relative to. */
  readonly workingDirectory: string;
  /**
   * All of an open file of this process: standard input for the path `-`, or one that a shell names, as for
   * `<(command)`. Undefined where paths are never that.
   */
  readonly readDescriptor: ((descriptor: number, maxBytes: number) => Promise<Uint8Array>) | undefined;
  /** The manifests are those of static pods, whose priority classes nobody resolves. */
  readonly areStatic?: true;
}

/** What was found, as it was written (without defaults), for an {@link ApplyRequest}, and everything that is wrong. */
export interface LoadedManifests {
  readonly pods: readonly PodManifest[];
  readonly configMaps: readonly ConfigMapManifest[];
  readonly secrets: readonly SecretManifest[];
  readonly storage: readonly StorageManifest[];
  readonly errors: readonly ManifestError[];
  /** What is allowed and hardly meant. */
  readonly warnings: readonly ManifestError[];
  /** Where each object stands, by {@link objectName}. */
  readonly origins: ReadonlyMap<string, Origin>;
}

/** Names of the manifests in a directory, sorted. */
export async function manifestNames(files: Pick<Files, "list">, directory: string): Promise<string[]> {
  const entries = await files.list(directory);
  return entries
    .map(({ name }) => name)
    .filter(isManifestName)
    .toSorted();
}

/**
 * Reads the manifests that a command was given: files, directories (their .yaml, .yml and .json files, not those in
 * directories below), http and https URLs, `-` for standard input, and open files such as `/dev/fd/63`. Whatever has an error is left out and reported;
 * of two objects of one kind and name the first counts. Rejects only when the signal aborts.
 */
export async function loadManifests(
  paths: readonly string[],
  deps: LoadDependencies,
  signal: AbortSignal,
): Promise<LoadedManifests> {
  const objects: DecodedManifest[] = [];
  const errors: ManifestError[] = [];
  for (const path of paths) {
    for await (const text of readTexts(path, deps, signal)) {
      if (text instanceof ManifestError) {
        errors.push(text);
        continue;
      }
      const decoded = decodeManifests(text.bytes, text.name);
      objects.push(...decoded.objects);
      errors.push(...decoded.errors, ...furtherErrors(decoded));
      if (decoded.objects.length === 0 && decoded.errors.length === 0) {
        errors.push(new ManifestError({ file: text.name }, "contains no manifest"));
      }
    }
  }
  return { ...checkAll(objects, errors, deps), errors };
}

function checkAll(
  objects: readonly DecodedManifest[],
  errors: ManifestError[],
  { areStatic }: LoadDependencies,
): Omit<LoadedManifests, "errors"> {
  const pods: PodManifest[] = [];
  const configMaps: ConfigMapManifest[] = [];
  const secrets: SecretManifest[] = [];
  const storage: StorageManifest[] = [];
  const seen: DecodedManifest[] = [];
  const warnings: ManifestError[] = [];
  for (const object of objects) {
    const prepared = prepareManifests([object]);
    const found = [...prepared.errors];
    for (const pod of prepared.pods) {
      const at = ({ path, detail }: FieldError): ManifestError => ManifestError.at(pod.origin, path, detail);
      if (areStatic !== true) found.push(...priorityErrors(pod.manifest).map(at));
      warnings.push(...pod.warnings, ...(areStatic === true ? [] : priorityWarnings(pod.manifest).map(at)));
    }
    errors.push(...found);
    if (found.length === 0) seen.push(object);
  }
  const duplicates = duplicateErrors(prepareManifests(seen));
  errors.push(...duplicates);
  const origins = new Map<string, Origin>();
  for (const object of seen) {
    const key = objectName(object.manifest);
    if (origins.has(key)) continue;
    origins.set(key, object.origin);
    if (object.kind === "Pod") pods.push(object.manifest);
    else if (object.kind === "ConfigMap") configMaps.push(object.manifest);
    else if (object.kind === "Secret") secrets.push(object.manifest);
    else storage.push(object.manifest);
  }
  return { pods, configMaps, secrets, storage, warnings, origins };
}

/** Of the files in a directory these are read. */
export function isManifestName(name: string): boolean {
  return /^[^.].*\.(?:ya?ml|json)$/iu.test(name);
}

interface Text {
  /** As the person wrote the path. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

async function* readTexts(
  path: string,
  deps: LoadDependencies,
  signal: AbortSignal,
): AsyncIterable<Text | ManifestError> {
  signal.throwIfAborted();
  const { readDescriptor } = deps;
  const descriptor = readDescriptor && descriptorOf(path);
  if (path === "") {
    // Most often a variable of a script that is not set; the working directory would be a surprise.
    yield new ManifestError({ file: '""' }, "empty name; use . for the working directory");
  } else if (readDescriptor !== undefined && descriptor !== undefined) {
    const name = descriptor === 0 ? "<standard input>" : path;
    yield await attempt(name, async () => ({ name, bytes: await readDescriptor(descriptor, maxManifestBytes) }));
    signal.throwIfAborted();
  } else if (/^https?:\/\//iu.test(path)) {
    yield await attempt(displayUrl(path), () => fetchText(path, deps, signal));
    signal.throwIfAborted();
  } else {
    yield* readPath(path, deps);
  }
}

/** Opened by its name, an open pipe or socket would be another file, or none. */
function descriptorOf(path: string): number | undefined {
  if (path === "-" || path === "/dev/stdin") return 0;
  const digits = /^\/(?:dev|proc\/self)\/fd\/(?<number>\d{1,9})$/u.exec(path)?.groups?.["number"];
  return digits === undefined ? undefined : Number(digits);
}

async function fetchText(url: string, deps: LoadDependencies, signal: AbortSignal): Promise<Text> {
  const name = displayUrl(url);
  const response = await withDeadline(deps.clock, `GET ${name}`, requestTimeoutMs, signal, (deadline) =>
    deps.network.httpGet({ url, headers: {}, maxBytes: maxManifestBytes, signal: deadline }),
  );
  if (response.status !== 200) throw new Error(`the server returned status ${response.status}`);
  return { name, bytes: response.body };
}

async function* readPath(
  path: string,
  { files, workingDirectory }: LoadDependencies,
): AsyncIterable<Text | ManifestError> {
  const absolute = isAbsolute(path) ? path : resolve(workingDirectory, path);
  const read = (name: string, place: string): Promise<Text | ManifestError> =>
    attempt(name, async () => ({ name, bytes: await files.read(place, maxManifestBytes) }));
  const type = await attempt(path, async () => (await files.stat(await files.realPath(absolute)))?.type);
  if (type instanceof ManifestError) {
    yield type;
  } else if (type === "directory") {
    const names = await attempt(path, () => manifestNames(files, absolute));
    if (names instanceof ManifestError) {
      yield names;
      return;
    }
    if (names.length === 0) yield new ManifestError({ file: path }, "holds no .yaml, .yml or .json file");
    for (const name of names) yield await read(join(path, name), join(absolute, name));
  } else {
    yield await read(path, absolute);
  }
}

/** Turns what fails into an error that says which file or URL. */
async function attempt<T>(name: string, work: () => Promise<T>): Promise<T | ManifestError> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof FileError)) return new ManifestError({ file: name }, errorMessage(error));
    switch (error.code) {
      case "EFBIG":
        return tooBig(name);
      case "ENOENT":
      case "ENOTDIR":
        return new ManifestError({ file: name }, "does not exist");
      case "EACCES":
        return new ManifestError({ file: name }, "cannot be read: permission denied");
      case "EISDIR":
        return new ManifestError({ file: name }, "is a directory, not a file");
      case "EINVAL":
        return new ManifestError({ file: name }, "is neither a file nor a directory");
      default:
        return new ManifestError({ file: name }, `cannot be read: ${errorMessage(error)}`);
    }
  }
}
