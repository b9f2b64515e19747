import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { type DownwardApiInputs, fieldValue, resourceFileValue } from "../runtime/config/downward-api.ts";
import type { ConfigMapContent } from "../api/object-content.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { Payload, ProjectedFile } from "./atomic-writer.ts";
import { NotNowError, VolumeError } from "../runtime/volume-error.ts";

/** The inputs of volume contents. */
export interface PayloadInputs {
  readonly objects: ObjectLookup;
  readonly downward: DownwardApiInputs;
}

/** The inputs of one volume. Thousands of its files may show the same, which is made once. */
interface VolumeInputs extends Pick<PayloadInputs, "objects"> {
  readonly configMapData: (content: ConfigMapContent) => ReadonlyMap<string, Uint8Array>;
  readonly downwardData: (item: DownwardItem) => Uint8Array;
}

type ConfigMapSource = NonNullable<Volume["configMap"]>;
type ObjectSource = Pick<ConfigMapSource, "items" | "optional" | "name">;
type DownwardItem = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>[number];
type TokenSource = NonNullable<Projection["serviceAccountToken"]>;
type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

/** Default permissions. */
const defaultFileMode = 0o644;

const encoder = new TextEncoder();

/**
 * The files of a configMap, secret, downwardAPI or projected volume; undefined for other types. Pure.
 * @throws VolumeError when a required object or key is missing, ContainerConfigError for unsupported fields; never
 *   includes a value
 */
export function volumePayload(volume: Volume, pod: Pod, { objects, downward }: PayloadInputs): Payload | undefined {
  const { configMap, secret, downwardAPI, projected } = volume;
  const inputs = {
    objects,
    configMapData: madeOnce(configMapData, (content) => content),
    downwardData: madeOnce(
      (item: DownwardItem) => encoder.encode(downwardValue(item, pod, downward)),
      ({ fieldRef, resourceFieldRef }) => JSON.stringify([fieldRef, resourceFieldRef]),
    ),
  };
  if (configMap !== undefined) return configMapFiles(configMap, configMap.defaultMode, pod, inputs);
  if (secret !== undefined) {
    return secretFiles({ ...secret, name: secret.secretName }, secret.defaultMode, pod, inputs);
  }
  if (downwardAPI !== undefined) return downwardFiles(downwardAPI.items, downwardAPI.defaultMode, inputs);
  if (projected === undefined) return undefined;
  const files = (projected.sources ?? []).map((source) => projectedFiles(source, projected.defaultMode, pod, inputs));
  // A later source wins.
  return new Map(files.flatMap((payload) => [...payload]));
}

/**
 * The inputs of the payload, by identity: while each is the same, so is the payload. Sources return the same object
 * until it changes.
 */
export function payloadInputs(volume: Volume, pod: Pod, { objects }: PayloadInputs): readonly unknown[] {
  const { namespace } = pod.metadata;
  const sources = [{ configMap: volume.configMap, secret: undefined }, ...(volume.projected?.sources ?? [])];
  return [
    pod,
    volume.secret && objects.secret(namespace, volume.secret.secretName ?? ""),
    ...sources.flatMap(({ configMap, secret }) => [
      configMap && objects.configMap(namespace, configMap.name ?? ""),
      secret && objects.secret(namespace, secret.name ?? ""),
    ]),
    ...(volume.projected?.sources ?? []).flatMap(({ serviceAccountToken: source }) => {
      return source === undefined ? [] : Object.values(objects.serviceAccountToken?.(pod, source) ?? {});
    }),
  ];
}

function projectedFiles(source: Projection, mode: number | undefined, pod: Pod, inputs: VolumeInputs): Payload {
  if (source.configMap !== undefined) return configMapFiles(source.configMap, mode, pod, inputs);
  if (source.secret !== undefined) return secretFiles(source.secret, mode, pod, inputs);
  if (source.downwardAPI !== undefined) return downwardFiles(source.downwardAPI.items, mode, inputs);
  if (source.serviceAccountToken !== undefined) return tokenFile(source.serviceAccountToken, mode, pod, inputs);
  throw new VolumeError(`projected source ${Object.keys(source)[0] ?? "without a type"} is not supported`);
}

function configMapFiles(source: ObjectSource, mode: number | undefined, pod: Pod, inputs: VolumeInputs): Payload {
  const { name = "", optional = false, items } = source;
  const content = inputs.objects.configMap(pod.metadata.namespace, name);
  if (content === undefined && !optional) throw new VolumeError(`configmap ${JSON.stringify(name)} not found`);
  const data = content && inputs.configMapData(content);
  const missing = (key: string): string => `configmap references non-existent config key: ${key}`;
  return pick(data ?? new Map(), items, mode, optional, missing);
}

function configMapData({ data, binaryData }: ConfigMapContent): ReadonlyMap<string, Uint8Array> {
  return new Map([...[...data].map(([key, text]) => [key, encoder.encode(text)] as const), ...binaryData]);
}

function secretFiles(source: ObjectSource, mode: number | undefined, pod: Pod, inputs: VolumeInputs): Payload {
  const { name = "", optional = false, items } = source;
  const content = inputs.objects.secret(pod.metadata.namespace, name);
  if (content === undefined && !optional) throw new VolumeError(`secret ${JSON.stringify(name)} not found`);
  const missing = (key: string): string => `references non-existent secret key: ${key}`;
  return pick(content?.data ?? new Map(), items, mode, optional, missing);
}

/**
 * As upstream: readable only by the pod's user or group. With a user namespace the user is the same, because mounts of
 * such pods are ID-mapped.
 */
function tokenFile(source: TokenSource, mode = defaultFileMode, pod: Pod, { objects }: VolumeInputs): Payload {
  const found = objects.serviceAccountToken?.(pod, source);
  if (found === undefined) throw new VolumeError("projected source serviceAccountToken is not supported here");
  if ("problem" in found) throw new NotNowError(found.problem);
  const uid = onlyUser(pod);
  const isOwned = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
  return new Map([[source.path, { data: encoder.encode(found.token), mode: isOwned ? 0o600 : mode, uid }]]);
}

/** The common runAsUser of all containers of the pod; undefined: none. */
function onlyUser({ spec }: Pod): number | undefined {
  const users = new Set(
    allContainers(spec).map((each) => each.securityContext?.runAsUser ?? spec.securityContext?.runAsUser),
  );
  return users.size === 1 ? [...users][0] : undefined;
}

/** All keys, or those of `items` with their paths. */
function pick(
  data: ReadonlyMap<string, Uint8Array>,
  items: ObjectSource["items"],
  defaultMode = defaultFileMode,
  optional: boolean,
  missing: (key: string) => string,
): Payload {
  if (items === undefined || items.length === 0) {
    return new Map([...data].map(([key, bytes]) => [key, { data: bytes, mode: defaultMode }]));
  }
  const files = new Map<string, ProjectedFile>();
  for (const { key, path, mode = defaultMode } of items) {
    const bytes = data.get(key);
    if (bytes !== undefined) files.set(path, { data: bytes, mode });
    else if (!optional) throw new VolumeError(missing(key));
  }
  return files;
}

function downwardFiles(
  items: readonly DownwardItem[] | undefined,
  defaultMode = defaultFileMode,
  { downwardData }: VolumeInputs,
): Payload {
  return new Map(
    (items ?? []).map((item) => [item.path, { data: downwardData(item), mode: item.mode ?? defaultMode }]),
  );
}

function downwardValue(
  { path, fieldRef, resourceFieldRef }: DownwardItem,
  pod: Pod,
  inputs: DownwardApiInputs,
): string {
  if (fieldRef !== undefined) {
    // Addresses and the node may change without an update of the files, so only environment variables offer them.
    if (!fieldRef.fieldPath.startsWith("metadata.")) {
      throw new VolumeError(`field label not supported in a volume: ${fieldRef.fieldPath}`);
    }
    return fieldValue(fieldRef, pod, inputs);
  }
  if (resourceFieldRef?.containerName === undefined) {
    throw new VolumeError(`downward API file ${path} has neither a fieldRef nor a resourceFieldRef with containerName`);
  }
  const { containerName } = resourceFieldRef;
  return resourceFileValue({ ...resourceFieldRef, containerName }, pod, inputs);
}

function madeOnce<Input, Made>(make: (input: Input) => Made, keyOf: (input: Input) => unknown): (input: Input) => Made {
  const known = new Map<unknown, Made>();
  return (input) => {
    const key = keyOf(input);
    const made = known.get(key) ?? make(input);
    known.set(key, made);
    return made;
  };
}
