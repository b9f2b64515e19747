import { vectorText } from "./vectors.ts";
import type { DriverCall } from "./csi-driver.ts";
import { CsiNames } from "../../src/csi/names.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";

/** A call of the recording, with the names of the specification's fields. */
interface RecordedCall {
  readonly call: string;
  readonly code: string;
  /** What was left to its deadline. */
  readonly deadline_s: number;
  readonly request: Readonly<Record<string, unknown>>;
}

/** A line of the recording: a call, or what was done to the node before the next ones. */
type RecordedLine = RecordedCall | { readonly phase: string };

/** What has other names in the recording, and what both are replaced by. */
export type Names = readonly (readonly [name: string, stands: string])[];

/** The recorded driver, and its StorageClass's mark on each volume. */
export const recordedDriver = "hostpath.csi.k8s.io";
export const recordedAttributes = {
  "storage.kubernetes.io/csiProvisionerIdentity": "1795643328049-406-hostpath.csi.k8s.io",
};

/** Handle and PersistentVolume of each recorded claim, by the pod that it was made for. */
export const recordedVolumes = {
  a: ["01446302-e91a-11f1-999b-423236085e7c", "pvc-ed15e002-32b6-4491-94bd-11c8dd2ff152"],
  b: ["0fb24363-e91a-11f1-999b-423236085e7c", "pvc-99ec64ba-d02f-4b0f-8c3d-3959f1d11c8e"],
  e: ["15960359-e91a-11f1-999b-423236085e7c", "pvc-a6e3a7b1-ddc4-4886-ac51-9010e5426ae9"],
  h1: ["8c7ad725-e91a-11f1-999b-423236085e7c", "pvc-ab689bbf-e863-4a3e-834b-cd3e229ffad4"],
  // The PersistentVolumes of volumes that were never published are not recorded.
  h2: ["964e8e5c-e91a-11f1-999b-423236085e7c", "pvc-h2"],
  h3: ["a032e3fb-e91a-11f1-999b-423236085e7c", "pvc-h3"],
  h4: ["a9b08a6c-e91a-11f1-999b-423236085e7c", "pvc-f26a14b4-488d-4211-a2f8-e8614b942ed6"],
} as const satisfies Record<string, readonly [handle: string, volume: string]>;

/** Of the Go kubelet's pods. */
const recordedUids = {
  a: "5c2c3c23-e30e-4cef-82a7-5140ef525f84",
  a2: "de9a500b-598a-4599-b578-c2402311cf62",
  b: "203cdce9-260d-4bfb-beb1-4639bada3532",
  c: "d7341703-64bd-4edb-b20f-97d0b9a47c82",
  e: "23569bd7-e801-4c98-8fa1-470661e31250",
  h1: "df8217d9-7cf1-4983-a91e-9345fb85a375",
  h4: "3266b547-4fd5-445f-9c78-9e2dd22bc624",
};

/**
 * Names of the root directory, of pods by their UIDs, and of what their inline volumes `d` get their names from.
 * @param uids by the pods' names
 */
export function namesOf(root: string, uids: Readonly<Record<string, string>>): Names {
  const names = new CsiNames(systemHashing, root, "node1");
  const ofPods = Object.entries(uids).flatMap(([pod, uid]) => {
    const handle = names.inlineHandle(uid, "d");
    return [
      [names.attachment(recordedDriver, handle), `<attachment-of-${pod}>`],
      [handle, `<inline-volume-of-${pod}>`],
      [uid, `<UID-of-${pod}>`],
    ] as const;
  });
  return [...ofPods, [root, "<root>"]];
}

const recordedNames = namesOf("<root>", recordedUids);

export function renamed(text: string, names: Names): string {
  return names.reduce((all, [name, stands]) => all.replaceAll(name, stands), text);
}

/** A recorded text with the names that both have. */
export function recordedText(name: string): string {
  return renamed(vectorText(name), recordedNames);
}

/** Calls of one start of the kubelet after the other. */
type Starts = readonly (readonly RecordedCall[])[];

function recordedStarts(): Starts {
  const starts: RecordedCall[][] = [[]];
  for (const text of vectorText("csi-calls.jsonl").trim().split("\n")) {
    const line = JSON.parse(text) as RecordedLine;
    if ("call" in line) starts.at(-1)?.push({ ...line, call: line.call.replace("Node/", "") });
    else if (line.phase === "kubelet starts") starts.push([]);
  }
  return starts;
}

/** What the drivers of both were told, to be compared. */
export class ToldCalls {
  readonly #starts: Starts;
  readonly #names: Names;

  private constructor(starts: Starts, names: Names) {
    this.#starts = starts;
    this.#names = names;
  }

  static recorded(): ToldCalls {
    return new ToldCalls(recordedStarts(), recordedNames);
  }

  /** @param startedAt how many calls there were at each further start of the kubelet */
  static of(calls: readonly DriverCall[], startedAt: readonly number[], names: Names): ToldCalls {
    const bounds = [0, ...startedAt, calls.length];
    const starts = bounds.slice(1).map((end, index) => calls.slice(bounds[index], end).map(inRecordedForm));
    return new ToldCalls(starts, names);
  }

  /**
   * The calls that change something about a volume, in their order in each start of the kubelet that has any.
   * @param handle a recorded one, or what stands for it
   */
  lifeOf(handle: string): readonly (readonly string[])[] {
    const starts = this.#starts.map((calls) => {
      const lines = calls.filter(({ call }) => !asks.has(call)).map((call) => lineOf(call, this.#names));
      const own = lines.filter((line) => line.includes(`"volume_id":"${handle}"`));
      return inAnyOrder(withoutRetries(withoutRepublishes(own.map(atAnyPod))));
    });
    const told = starts.filter((lines) => lines.length > 0);
    if (told.length === 0) throw new Error(`nothing was told of volume ${handle}`);
    return told;
  }

  /** What is measured of volumes, by the kubelet's first start. When, and how often, depends on chance. */
  get measured(): readonly string[] {
    const [first = []] = this.#starts;
    const lines = first.filter(({ call }) => call === "NodeGetVolumeStats").map((call) => lineOf(call, this.#names));
    return [...new Set(lines)].toSorted();
  }
}

/** They change nothing. How often a driver is asked what it can do depends on what the kubelet remembers. */
const asks: ReadonlySet<string> = new Set(["NodeGetInfo", "NodeGetCapabilities", "NodeGetVolumeStats"]);

/** A driver that requires it gets the volumes of running pods published again with their syncs, whenever these are. */
function withoutRepublishes(lines: readonly string[]): string[] {
  return lines.filter((line, at) => !isPublish(line) || !line.includes('"OK"') || lines.indexOf(line) === at);
}

/** A call that fails is repeated, as often as the fault lasts. */
function withoutRetries(lines: readonly string[]): string[] {
  return lines.filter((line, at) => line.includes('"OK"') || line !== lines[at - 1]);
}

/** Pods that use the same volume get it independently. */
function inAnyOrder(lines: readonly string[]): string[] {
  const first = lines.findIndex(isPublish);
  const after = lines.findIndex((line, at) => at > first && !isPublish(line));
  const end = after === -1 ? lines.length : after;
  if (first === -1) return [...lines];
  return [...lines.slice(0, first), ...lines.slice(first, end).toSorted(), ...lines.slice(end)];
}

/** A volume is expanded once, in any of the pods that use it. */
function atAnyPod(line: string): string {
  if (!line.startsWith('["NodeExpandVolume"')) return line;
  return line.replace(/(?<="volume_path":"<root>\/pods\/)[^/]+/u, "<UID>");
}

function isPublish(line: string): boolean {
  return line.startsWith('["NodePublishVolume"');
}

function lineOf({ call, code, deadline_s: limit, request }: RecordedCall, names: Names): string {
  const text = JSON.stringify([call, code, `${Math.round(limit / 10) * 10} s`, sorted(request)]);
  return renamed(text, names).replaceAll(/(token|expirationTimestamp)(\\*":\\*")[^\\"]+/gu, "$1$2<$1>");
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, sorted(each)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A call of the tests' driver in the recording's form, which leaves out what a field has by default. */
function inRecordedForm({ method, code, limitMs = 0, request }: DriverCall): RecordedCall {
  return { call: method, code, deadline_s: limitMs / 1000, request: recordedFields(request) };
}

function recordedFields(message: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields = Object.entries(message).flatMap(([name, value]): [string, unknown][] => {
    if (name === "accessType") return [["AccessType", recordedChoice(value as Choice)]];
    if (name.endsWith("Bytes")) return Number(value) === 0 ? [] : [[underscored(name), Number(value)]];
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return isDefault(value) ? [] : [[underscored(name), value]];
    }
    const isMap = name === "volumeContext" || name === "publishContext" || name === "secrets";
    const below = isMap ? value : recordedFields(value as Readonly<Record<string, unknown>>);
    return Object.keys(below).length === 0 ? [] : [[underscored(name), below]];
  });
  return Object.fromEntries(fields);
}

interface Choice {
  readonly case: "mount" | "block";
  readonly value: Readonly<Record<string, unknown>>;
}

function recordedChoice({ case: kind, value }: Choice): Record<string, unknown> {
  return { [kind === "mount" ? "Mount" : "Block"]: recordedFields(value) };
}

function isDefault(value: unknown): boolean {
  return value === "" || value === false || value === 0 || (Array.isArray(value) && value.length === 0);
}

/** `volumeId` as `volume_id`. */
function underscored(name: string): string {
  return name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}
