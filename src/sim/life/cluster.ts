import { isStaticPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { behaviourCommand } from "../behaviour.ts";
import { type Place, keyOf } from "../api-server/registry.ts";
import { type ServerSettings, SimApiServer } from "../api-server/server.ts";
import type { Stored } from "../api-server/store.ts";
import { fieldsAt, listAt, type Fields, type Value } from "../api-server/values.ts";
import type { SimClock } from "../clock.ts";
import type { SimRandom } from "../random.ts";
import { SimStorage } from "../csi/storage.ts";
import { watchNodeLife } from "./node-controller.ts";
import type { SimObjects } from "./objects.ts";

export const clusterNodeName = "sim";

/** Controllers see events a little later. */
const controllerMs = 200;
const configHash = "kubernetes.io/config.hash";
const configMirror = "kubernetes.io/config.mirror";

/**
 * The cluster of a simulated node: an API server, with the controllers and users who create, change and delete pods.
 * Their requests always succeed at once: faults are only between the server and the node.
 */
export class SimCluster {
  readonly server: SimApiServer;
  /** Pods that should run: undeleted ones of the server, and static ones. */
  readonly desired = new Map<string, Pod>();
  /** The newest version that the node has seen, in all of its runs. */
  readonly seen = { version: 0 };
  /** Undefined: pods have no claims. */
  storage: SimStorage | undefined;
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  /** Desired pods whose names are still taken. */
  readonly #waiting: Pod[] = [];
  readonly #used = new Set<string>();
  #services = 0;
  #ephemeral = 0;

  constructor(settings: ServerSettings, random: SimRandom) {
    this.#clock = settings.clock;
    this.#random = random;
    this.server = new SimApiServer(settings);
    this.server.registry.create("runtimeclasses", undefined, {
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name: "plain" },
      handler: "plain",
    });
    this.#create("ConfigMap", "configmaps", "kube-root-ca.crt", { data: { "ca.crt": "a certificate" } });
    this.changeServices();
    this.server.registry.store.onChange(({ resource, after }) => {
      if (resource !== "pods" || after !== undefined || this.#waiting.length === 0) return;
      this.#clock.schedule("a controller to see that a name is free", controllerMs, () => this.#createWaiting());
    });
    watchNodeLife(this.server, this.#clock);
  }

  /**
   * A static pod's manifest, or a pod of the API server bound to the node; a pod whose name is taken is added when it
   * is free.
   */
  want(pod: Pod): boolean {
    const { uid } = pod.metadata;
    if (isStaticPod(pod)) {
      this.desired.set(uid, pod);
      return true;
    }
    // The API server never reuses a UID.
    if (this.#used.has(uid)) return false;
    this.#used.add(uid);
    this.#waiting.push(pod);
    this.#createWaiting();
    return true;
  }

  /** From now on there are claims. */
  addStorage(random: SimRandom, grows: boolean, hasDevices = false): void {
    const [server, clock] = [this.server, this.#clock];
    this.storage = new SimStorage({ server, clock, random, nodeName: clusterNodeName, grows, hasDevices });
  }

  change(pod: Pod): void {
    const { uid, labels } = pod.metadata;
    if (!this.desired.has(uid)) return;
    if (isStaticPod(pod)) return void this.desired.set(uid, pod);
    const stored = this.#podOf(uid);
    if (stored === undefined) return;
    this.desired.set(uid, pod);
    const { containers, ephemeralContainers } = pod.spec;
    const before = fieldsAt(stored.value, "spec");
    const spec = { ...before, containers, ...(ephemeralContainers && { ephemeralContainers }) };
    // Counts changes of the spec alone.
    const isChanged = JSON.stringify(spec) !== JSON.stringify(before);
    const generation = (stored.value.metadata.generation ?? 1) + (isChanged ? 1 : 0);
    const metadata = { ...stored.value.metadata, generation, ...(labels && { labels }) };
    this.#put(stored, { ...stored.value, metadata, spec });
  }

  /** Deletes a pod of the API server, or removes a static pod's manifest. */
  delete(uid: string, gracePeriodSeconds?: number): void {
    const pod = this.desired.get(uid);
    this.desired.delete(uid);
    const index = this.#waiting.findIndex(({ metadata }) => metadata.uid === uid);
    if (index >= 0) this.#waiting.splice(index, 1);
    const stored = pod !== undefined && isStaticPod(pod) ? undefined : this.#podOf(uid);
    if (stored === undefined) return;
    this.server.registry.delete(placeOf(stored), gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds });
  }

  /** Like the eviction API. */
  evict(uid: string): void {
    if (this.isStatic(uid)) return;
    this.#setCondition(uid, { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" });
    this.delete(uid);
  }

  /** UIDs of pods that are created once their names are free. */
  waiting(): string[] {
    return this.#waiting.map(({ metadata }) => metadata.uid);
  }

  isStatic(uid: string): boolean {
    const pod = this.desired.get(uid);
    return pod !== undefined && isStaticPod(pod);
  }

  statics(): Pod[] {
    return [...this.desired.values()].filter(isStaticPod);
  }

  /** UIDs of the server's pods that are being deleted. */
  ending(): string[] {
    const pods = this.server.registry.store.list("pods").filter((stored) => !isMirror(stored));
    return pods.filter(isDeleted).map(({ value }) => value.metadata.uid);
  }

  mirrors(): Stored[] {
    return this.server.registry.store.list("pods").filter(isMirror);
  }

  deleteMirror(gracePeriodSeconds: number | undefined): void {
    const mirror = this.#random.pickFrom(this.mirrors());
    if (mirror === undefined) return;
    this.server.registry.delete(placeOf(mirror), gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds });
  }

  addEphemeral(uid: string, random: SimRandom): void {
    const pod = this.desired.get(uid);
    if (pod === undefined || isStaticPod(pod)) return;
    const exitAfterMs = random.pick([undefined, random.integer(0, 60_000)]);
    const command = behaviourCommand({ exitAfterMs, exitCode: random.pick([0, 1]), deaf: false, unstartable: false });
    const debug = {
      name: `debug-${++this.#ephemeral}`,
      image: "busybox",
      imagePullPolicy: "IfNotPresent",
      command,
    } as const;
    const ephemeralContainers = [...(pod.spec.ephemeralContainers ?? []), debug];
    this.change({ ...pod, spec: { ...pod.spec, ephemeralContainers } });
  }

  writeCondition(uid: string, type: string): void {
    this.#setCondition(uid, { type, status: "False", reason: "SomebodyElse" });
  }

  /** Copies ConfigMaps and Secrets from `objects`. */
  writeObjects(objects: SimObjects): void {
    const settings = objects.configMap("default", "settings");
    const secret = objects.secret("default", "credentials");
    const data = Object.fromEntries(settings?.data ?? []);
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
    this.#create("ConfigMap", "configmaps", "settings", { data });
    this.#create("Secret", "secrets", "credentials", {
      data: Object.fromEntries([...(secret?.data ?? [])].map(([name, bytes]) => [name, text(bytes)])),
    });
    if (objects.lateIsThere) this.#create("ConfigMap", "configmaps", "late", { data });
  }

  changeServices(): void {
    const name = `service-${++this.#services}`;
    const spec = { clusterIP: `10.96.0.${this.#services}`, ports: [{ port: 80, protocol: "TCP" }] };
    this.#create("Service", "services", name, { spec });
    if (this.#services > 2) {
      this.server.registry.delete(
        { resource: "services", namespace: "default", name: `service-${this.#services - 2}` },
        {},
      );
    }
  }

  /** The server's pod of a UID, unless it is a mirror pod. */
  pod(uid: string): Stored | undefined {
    return this.#podOf(uid);
  }

  #createWaiting(): void {
    const { store } = this.server.registry;
    for (const pod of [...this.#waiting]) {
      const { name, namespace, uid, labels, annotations } = pod.metadata;
      if (store.get("pods", keyOf(namespace, name)) !== undefined) continue;
      this.#waiting.splice(this.#waiting.indexOf(pod), 1);
      this.desired.set(uid, pod);
      const spec = { ...pod.spec, nodeName: clusterNodeName, serviceAccountName: "default" };
      const metadata = { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }) };
      this.server.registry.create("pods", namespace, { apiVersion: "v1", kind: "Pod", metadata, spec }, uid);
    }
  }

  #create(kind: string, resource: string, name: string, content: Fields): void {
    const { registry } = this.server;
    const place: Place = { resource, namespace: "default", name };
    const known = registry.store.get(resource, keyOf("default", name));
    if (known !== undefined) registry.change(place, "merge", content);
    else registry.create(resource, "default", { apiVersion: "v1", kind, metadata: { name }, ...content });
  }

  #setCondition(uid: string, condition: Fields): void {
    const stored = this.#podOf(uid);
    if (stored === undefined) return;
    const status = fieldsAt(stored.value, "status");
    const others = listAt(status, "conditions").filter(({ type }) => type !== condition["type"]);
    const times = { lastProbeTime: null, lastTransitionTime: stored.value.metadata.creationTimestamp };
    this.#put(stored, { ...stored.value, status: { ...status, conditions: [...others, { ...condition, ...times }] } });
  }

  #put({ key }: Stored, value: Value): void {
    this.server.registry.store.put("pods", key, value);
  }

  #podOf(uid: string): Stored | undefined {
    return this.server.registry.store.list("pods").find(({ value }) => value.metadata.uid === uid);
  }
}

/** A static pod as from a source: its UID replaces the hash of its manifest. */
export function asStatic(pod: Pod): Pod {
  const { metadata } = pod;
  const annotations = { ...metadata.annotations, [configHash]: metadata.uid, "kubernetes.io/config.source": "file" };
  return { metadata: { ...metadata, annotations }, spec: { ...pod.spec, nodeName: clusterNodeName } };
}

export function isMirror({ value }: Stored): boolean {
  return value.metadata.annotations?.[configMirror] !== undefined;
}

export function isDeleted({ value }: Stored): boolean {
  return value.metadata.deletionTimestamp !== undefined;
}

function placeOf({ value }: Stored): Place {
  const { namespace, name } = value.metadata;
  return { resource: "pods", namespace, name };
}
