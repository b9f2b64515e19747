import { isDeepStrictEqual } from "node:util";
import { podUid } from "../base/ids.ts";
import type { ConfigMapManifest, Pod, PodManifest } from "../api/pod.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { Semaphore } from "../base/semaphore.ts";
import { randomUuid } from "../base/uuid.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import type { AppliedPod, ApplyRequest, ObjectPlan } from "../server/local-api.ts";
import { type ChangedObject, referencedObjects } from "../api/referenced-objects.ts";
import { decodeManifests } from "./decode.ts";
import { withDefaults } from "./defaults.ts";
import { formatPath, ManifestError } from "../yaml/manifest-error.ts";
import { podWarnings } from "./pod-warnings.ts";
import { priorityErrors, priorityWarnings, withClassPriority } from "./priority-class.ts";
import {
  type Checked,
  duplicateErrors,
  furtherErrors,
  objectName,
  prepareManifests,
  type PreparedManifests,
} from "./prepare.ts";
import { podChange, type RunPod, updated, updateProblems } from "./run-change.ts";
import { objectKey, RunObjects } from "./run-objects.ts";
import type { RunStorage } from "./run-storage.ts";
import { type RunObject, RunStore, type StoredProblem } from "./run-store.ts";
import type { SourceDependencies, SourcedPod } from "./source.ts";

export interface RunSourceConfig {
  /** Where the objects are kept, absolute, e.g. `<state>/manifests`. */
  readonly directory: string;
}

type RunSourceDependencies = SourceDependencies & {
  readonly files: Files;
  readonly random: Random;
  /** Called with changed ConfigMaps and Secrets that pods may have read already. */
  readonly objectsChanged: (objects: readonly ChangedObject[], cause: Cause) => void;
  /** Stores claims and the objects behind them. */
  readonly storage: RunStorage;
  /** Whether the pod has run to its end. */
  readonly hasEnded: (uid: PodUid) => boolean;
};

interface CheckedRequest extends Omit<PreparedManifests, "pods" | "errors"> {
  readonly pods: readonly Checked<PodManifest>[];
}

/** A pod under the UID that it has, or gets, and what a manifest changes about it. */
interface IdentifiedPod {
  readonly pod: RunPod;
  readonly change: AppliedPod["change"];
}

/** What a request would change. */
export interface RunPreview {
  readonly pods: readonly {
    /** As it would run. One that gets a new UID has another here than it will have. */
    readonly pod: Pod;
    readonly change: AppliedPod["change"];
    /** UID of the pod that has the name now. */
    readonly replaces: PodUid | undefined;
    /** Claims that it would wait for, with the reasons. */
    readonly waits: readonly string[];
  }[];
  /** All but the pods. */
  readonly objects: readonly ObjectPlan[];
}

const encoder = new TextEncoder();

/** Waits for the disk run concurrently, and the file system combines their writes. */
const savesAtOnce = 16;

/**
 * The pods of `podwright run`, with their ConfigMaps and Secrets, and through {@link RunStorage} their claims. They are stored on disk, so that the next run delivers
 * the same pods under the same UIDs. Names stay as they are; a pod without a namespace is in `default`.
 */
export class RunSource {
  readonly #deps: RunSourceDependencies;
  readonly #store: RunStore;
  /** One change at a time. */
  readonly #turn = new Semaphore(1);
  readonly #objects = new RunObjects();
  readonly #pods = new Map<string, RunPod>();
  readonly #kept = { ConfigMap: new Set<string>(), Secret: new Set<string>() };
  /** Stored files that can't be read; undefined until all were tried. */
  #unreadable: readonly StoredProblem[] | undefined;

  constructor(deps: RunSourceDependencies, config: RunSourceConfig) {
    this.#deps = deps;
    this.#store = new RunStore(deps.files, config.directory);
  }

  /** Whether every pod that was stored is known. */
  get isComplete(): boolean {
    return this.#unreadable?.length === 0;
  }

  /** The problems of stored manifests, whose pods or claims are unknown. */
  get unreadable(): readonly string[] {
    return [...(this.#unreadable ?? []).map(({ message }) => message), ...this.#deps.storage.unreadable];
  }

  /** ConfigMaps and Secrets for the pods. */
  get objects(): RunObjects {
    return this.#objects;
  }

  /**
   * Reads what the earlier run stored and delivers it. An unreadable file is reported, and until it is replaced or the
   * next start the source is not complete: its pod must not count as an orphan.
   */
  async load(): Promise<void> {
    using _turn = await this.#turn.acquire();
    const { objects, problems: unreadable } = await this.#store.load();
    const problems = [...unreadable];
    // A claim is no pod: without it no pod counts as an orphan.
    const unreadableClaims = await this.#deps.storage.load();
    for (const object of objects) {
      if (object.kind === "ConfigMap") this.#takeConfigMap(object.manifest);
      else if (object.kind === "Secret") this.#takeSecret(object.manifest);
      else if (object.kind === "Pod") this.#takePod(object.manifest, object.origin.file, problems);
    }
    for (const message of [...problems.map((problem) => problem.message), ...unreadableClaims]) {
      this.#deps.journal.record({ kind: "input", what: "ManifestRejected", message });
      this.#deps.log.warn("stored manifest rejected", { problem: message });
    }
    this.#unreadable = problems;
    await this.#deps.storage.resume([...this.#pods.values()].map((pod) => this.#sourced(pod).pod));
    this.#deliver();
  }

  /**
   * Accepts pods and other objects in addition to existing ones. A pod with equal content is left alone, one with other
   * content is updated or replaced ({@link podChange}). Everything is validated again; with one error nothing is
   * accepted.
   * @throws PodwrightError naming every problem
   */
  async apply(request: ApplyRequest): Promise<readonly AppliedPod[]> {
    const { pods, configMaps, secrets, storage } = this.#check(request);
    using _turn = await this.#turn.acquire();
    const identified = this.#identifyAll(pods, request.runsAgain === true);
    this.#checkStorage(storage);
    const objects = storage.map(({ manifest }) => manifest);
    const coming = identified.map(({ pod }) => this.#sourced(pod).pod);
    await this.#deps.storage.prepare(objects, coming);
    // Written before it counts: what was promised survives a crash. ConfigMaps and Secrets first, as pods need them.
    await this.#deps.storage.take(objects, coming);
    for (const { manifest } of [...configMaps, ...secrets]) await this.#save(manifest);
    const changed = [
      ...configMaps.filter(({ manifest }) => this.#takeConfigMap(manifest)).map(changedObject("ConfigMap")),
      ...secrets.filter(({ manifest }) => this.#takeSecret(manifest)).map(changedObject("Secret")),
    ];
    try {
      return await this.#takePods(identified);
    } finally {
      this.#deliver();
      this.#tellOfChanges(changed);
    }
  }

  /**
   * What {@link apply} would do, without doing it.
   * @throws PodwrightError as apply does
   */
  preview(request: ApplyRequest): RunPreview {
    const { pods, configMaps, secrets, storage } = this.#check(request);
    this.#checkStorage(storage);
    const given = new RunObjects();
    for (const { manifest } of configMaps) given.setConfigMap(manifest);
    for (const { manifest } of secrets) given.setSecret(manifest);
    const changeOf = ({ kind, namespace, name }: ChangedObject): AppliedPod["change"] => {
      const read = kind === "ConfigMap" ? "configMap" : "secret";
      const before = this.#objects[read](namespace, name);
      if (before === undefined) return "added";
      return isDeepStrictEqual(before, given[read](namespace, name)) ? "unchanged" : "replaced";
    };
    const objects = [...configMaps.map(changedObject("ConfigMap")), ...secrets.map(changedObject("Secret"))];
    const identified = this.#identifyAll(pods, request.runsAgain === true).map((each) => ({
      ...each,
      pod: this.#sourced(each.pod).pod,
    }));
    const behind = this.#deps.storage.preview(
      storage.map(({ manifest }) => manifest),
      identified.map(({ pod }) => pod),
    );
    return {
      pods: identified.map(({ pod, change }, index) => {
        const replaces = this.#pods.get(objectKey(pod.metadata))?.metadata.uid;
        return { pod, change, replaces, waits: behind.waits[index] ?? [] };
      }),
      objects: [...objects.map((object) => ({ ...object, change: changeOf(object) })), ...behind.objects],
    };
  }

  /** The stored manifest of a pod; undefined if no pod of that name is desired. */
  manifest(namespace: string, name: string): PodManifest | undefined {
    return this.#pods.get(objectKey({ namespace, name }));
  }

  /**
   * Removes a pod from the desired ones, and the ConfigMaps and Secrets that no other refers to. False if there is no
   * such pod, as when another one has taken its name. Resolves as soon as that is on disk; the stop continues.
   * @param graceSeconds for the stop, instead of the pod's own
   */
  async remove({ namespace, name, uid }: PodRef, graceSeconds?: number): Promise<boolean> {
    using _turn = await this.#turn.acquire();
    const key = objectKey({ namespace, name });
    const pod = this.#pods.get(key);
    if (pod?.metadata.uid !== uid) return false;
    await this.#store.remove("Pod", key);
    this.#pods.delete(key);
    this.#deliver(graceSeconds === undefined ? undefined : new Map([[pod.metadata.uid, graceSeconds]]));
    // The pod of an unreadable manifest may need them.
    if (!this.isComplete) return true;
    await this.#removeUnusedObjects();
    if (this.#pods.size === 0) await this.#deps.storage.forgetUnused();
    return true;
  }

  #check(request: ApplyRequest): CheckedRequest {
    const items = [
      ...request.configMaps.map((object) => ({ ...object, apiVersion: "v1" as const, kind: "ConfigMap" as const })),
      ...request.secrets.map((object) => ({ ...object, apiVersion: "v1" as const, kind: "Secret" as const })),
      ...request.pods.map((object) => ({ ...object, apiVersion: "v1" as const, kind: "Pod" as const })),
      ...(request.storage ?? []),
    ];
    const decoded = items.map((item) => decodeManifests(encoder.encode(JSON.stringify(item)), objectName(item)));
    const objects = decoded.flatMap((each) => each.objects);
    const prepared = prepareManifests(objects);
    const unread = decoded.flatMap((each) => [...each.errors, ...furtherErrors(each)]);
    const errors = [...unread, ...prepared.errors, ...duplicateErrors(prepared)];
    for (const { manifest, origin } of prepared.pods) {
      errors.push(...priorityErrors(manifest).map(({ path, detail }) => ManifestError.at(origin, path, detail)));
      const node = manifest.spec.nodeName;
      if (!node || node === this.#deps.nodeName) continue;
      const detail = `Invalid value: this node is "${this.#deps.nodeName}"; omit the field`;
      errors.push(ManifestError.at(origin, ["spec", "nodeName"], detail));
    }
    if (errors.length > 0) throw rejected(errors);
    // Kept as written: a later version may know better defaults.
    const pods = objects.flatMap(({ kind, manifest, origin }) => (kind === "Pod" ? [{ manifest, origin }] : []));
    return { ...prepared, pods };
  }

  /** @throws PodwrightError naming every impossible update */
  #checkStorage(objects: CheckedRequest["storage"]): void {
    const errors = this.#deps.storage.problems(objects);
    if (errors.length > 0) throw rejected(errors);
  }

  /** Pods are wanted in the order in which they came, whichever of their files is on disk first. */
  async #takePods(pods: readonly IdentifiedPod[]): Promise<AppliedPod[]> {
    const places = new Semaphore(savesAtOnce);
    const saves = await Promise.allSettled(
      pods.map(async ({ pod, change }) => {
        if (change === "unchanged") return;
        using _place = await places.acquire();
        await this.#save(pod);
      }),
    );
    for (const [index, { pod }] of pods.entries()) {
      if (saves[index]?.status === "fulfilled") this.#pods.set(objectKey(pod.metadata), pod);
    }
    for (const save of saves) if (save.status === "rejected") throw save.reason;
    return pods.map(({ pod: { metadata }, change }) => {
      return { namespace: metadata.namespace || "default", name: metadata.name, uid: metadata.uid, change };
    });
  }

  /**
   * @param runsAgain unchanged pods that have ended get a successor, unless their UID is given
   * @throws PodwrightError naming every impossible update
   */
  #identifyAll(manifests: readonly Checked<PodManifest>[], runsAgain: boolean): IdentifiedPod[] {
    const errors: ManifestError[] = [];
    const pods = manifests.map(({ manifest, origin }) => {
      const before = this.#pods.get(objectKey(manifest.metadata));
      const same = before === undefined ? "added" : podChange(before, manifest);
      const isOver = before !== undefined && same === "unchanged" && this.#deps.hasEnded(before.metadata.uid);
      const change = isOver && runsAgain && !manifest.metadata.uid ? "replaced" : same;
      if (before !== undefined && change === "unchanged") return { pod: before, change };
      if (before !== undefined && change === "updated") {
        errors.push(
          ...updateProblems(before, manifest).map(({ path, detail }) => ManifestError.at(origin, path, detail)),
        );
        return { pod: updated(before, manifest), change };
      }
      const { name = "", namespace, uid } = manifest.metadata;
      const metadata = { name, namespace: namespace || "default", uid: podUid(uid || randomUuid(this.#deps.random)) };
      return { pod: { ...manifest, metadata: { ...manifest.metadata, ...metadata } }, change };
    });
    if (errors.length > 0) throw rejected(errors);
    return pods;
  }

  /** What could not be read under that name is gone then: its pod has a successor. */
  async #save(object: RunObject): Promise<void> {
    await this.#store.save(object);
    const path = this.#store.pathOf(object.kind, objectKey(object.metadata));
    this.#unreadable = this.#unreadable?.filter((problem) => problem.path !== path);
  }

  #takePod(manifest: PodManifest, file: string, problems: StoredProblem[]): void {
    if (isRunPod(manifest)) this.#pods.set(objectKey(manifest.metadata), manifest);
    else problems.push({ path: file, message: `${file}: holds a pod without a name or UID` });
  }

  #takeConfigMap(manifest: Parameters<RunObjects["setConfigMap"]>[0]): boolean {
    this.#kept.ConfigMap.add(objectKey(manifest.metadata));
    return this.#objects.setConfigMap(manifest);
  }

  #takeSecret(manifest: Parameters<RunObjects["setSecret"]>[0]): boolean {
    this.#kept.Secret.add(objectKey(manifest.metadata));
    return this.#objects.setSecret(manifest);
  }

  #tellOfChanges(objects: readonly ChangedObject[]): void {
    if (objects.length === 0) return;
    const names = objects.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`).join(", ");
    const message = `${names} ${objects.length === 1 ? "is" : "are"} new or changed`;
    const entry = this.#deps.journal.record({ kind: "input", what: "ObjectsChanged", message });
    this.#deps.objectsChanged(objects, { code: "ObjectsChanged", message, entry });
  }

  async #removeUnusedObjects(): Promise<void> {
    const used = { ConfigMap: new Set<string>(), Secret: new Set(this.#deps.storage.secrets()) };
    for (const { metadata, spec } of this.#pods.values()) {
      const { configMaps, secrets } = referencedObjects(spec);
      for (const name of configMaps) used.ConfigMap.add(objectKey({ ...metadata, name }));
      for (const name of secrets) used.Secret.add(objectKey({ ...metadata, name }));
    }
    for (const kind of ["ConfigMap", "Secret"] as const) {
      for (const key of this.#kept[kind].difference(used[kind])) {
        await this.#store.remove(kind, key);
        this.#objects.remove(kind, key);
        this.#kept[kind].delete(key);
      }
    }
  }

  #deliver(graceSeconds?: ReadonlyMap<PodUid, number>): void {
    const pods = [...this.#pods.values()].map((manifest) => this.#sourced(manifest));
    this.#deps.deliver({ pods, complete: this.isComplete, ...(graceSeconds && { graceSeconds }) });
  }

  #sourced(manifest: RunPod): SourcedPod {
    const { name, uid } = manifest.metadata;
    const namespace = manifest.metadata.namespace || "default";
    const { spec } = withDefaults(manifest);
    const pod: Pod = {
      metadata: { ...manifest.metadata, name, namespace, uid },
      spec: { ...withClassPriority(spec), nodeName: this.#deps.nodeName },
    };
    const doubtful = [...podWarnings(manifest), ...priorityWarnings(manifest)];
    const warnings = doubtful.map(({ path, detail }) => `${formatPath(path)}: ${detail}`);
    return { pod, place: `podwright run ${namespace}/${name}`, warnings };
  }
}

function changedObject(kind: ChangedObject["kind"]) {
  return ({ manifest }: { readonly manifest: Pick<ConfigMapManifest, "metadata"> }): ChangedObject => ({
    kind,
    namespace: manifest.metadata.namespace || "default",
    name: manifest.metadata.name ?? "",
  });
}

function isRunPod(manifest: PodManifest): manifest is RunPod {
  return Boolean(manifest.metadata.name) && Boolean(manifest.metadata.uid);
}

/** Positions are those of the request; a caller with the file finds the fields in it. */
function rejected(errors: readonly ManifestError[]): PodwrightError {
  const lines = errors.map(({ file, field, detail }) => `${file}: ${field === undefined ? "" : `${field}: `}${detail}`);
  const problems = errors.map(({ file, path, detail }) => ({ object: file, path, detail }));
  return new PodwrightError(ExitCode.badInput, lines.join("\n"), { problems });
}
