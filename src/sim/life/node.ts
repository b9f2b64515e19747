import type { KubeletConfig } from "../../kubelet/config.ts";
import type { Pod } from "../../api/pod.ts";
import { Emitter } from "../../base/emitter.ts";
import { errorMessage } from "../../base/errors.ts";
import { reclaimOf } from "../../engine/node-collection.ts";
import type { Pressure } from "../../eviction/pressure.ts";
import type { ImageCollectorConfig } from "../../images/image-collector.ts";
import { type JournalEntry, type JournalInput, lifeStarted } from "../../journal/entry.ts";
import type { CauseCode } from "../../journal/vocabulary.ts";
import type { KnownPod } from "../../kubelet/known-pods.ts";
import type { PodChange } from "../../pods/pod-change.ts";
import type { Clock } from "../../ports/clock.ts";
import type { StatusManager } from "../../status/status-manager.ts";
import { loseMounts, SimDrivers } from "../csi/drivers.ts";
import { SimConnection } from "../cri.ts";
import { SimDisks } from "../disks.ts";
import { MemoryFiles } from "../files.ts";
import { SimFirewall } from "../firewall.ts";
import { ForeignVolumes } from "../foreign-volumes.ts";
import { Gate } from "../gate.ts";
import { SimKernelLog } from "../kernel-log.ts";
import { simPressureStall } from "../pressure-stall.ts";
import { silentLog, SimCgroups, SimLoopDevices, SimMounts } from "../machine.ts";
import { SimMachineResources } from "../machine-resources.ts";
import { SimPressure } from "../pressure.ts";
import { SimProjectQuotas } from "../project-quotas.ts";
import {
  buildAlone,
  type Built,
  buildInCluster,
  type ClusterPlace,
  clusterPlace,
  type Surroundings,
} from "./build-kubelet.ts";
import type { SimCluster } from "./cluster.ts";
import { FaultWindows } from "./faults.ts";
import { imageRoom } from "./image-room.ts";
import type { Incarnation } from "./incarnation.ts";
import { MachinePower } from "./machine-power.ts";
import { manifestDelayMs, ManifestReader } from "./manifest-reader.ts";
import { portsOf } from "./machine-ports.ts";
import { calmSettings, type SimEvictionConfig, type SimNodeSettings } from "./node-settings.ts";
import { SimObjects } from "./objects.ts";
import type { AskedParts } from "./user-requests.ts";
import { simEvictions } from "./sim-evictions.ts";

/** A journal entry with its simulated time. */
export interface SimEntry extends JournalEntry {
  readonly atMs: number;
}

/** Delay of a supervisor's restart after podwright has exited. */
const supervisorMs = 5000;

/**
 * A whole node on a simulated machine: the production managers behind simulated ports. The machine (files, cgroups,
 * runtime) outlives the node, which can be killed between any two steps and restarted.
 */
export class SimNode {
  readonly files: MemoryFiles;
  readonly cgroups: SimCgroups;
  readonly mounts = new SimMounts();
  readonly loopDevices = new SimLoopDevices();
  readonly disks: SimDisks;
  readonly quotas: SimProjectQuotas;
  readonly foreignVolumes: ForeignVolumes;
  readonly objects = new SimObjects();
  readonly pressure = new SimPressure();
  readonly resources: SimMachineResources;
  readonly kernelLog: SimKernelLog;
  readonly firewall: SimFirewall;
  readonly power: MachinePower;
  readonly drivers: SimDrivers;
  readonly entries: SimEntry[] = [];
  /** The desired pods, as the sources deliver them to a starting node. */
  readonly desired: Map<string, Pod>;
  readonly imagePolicy: ImageCollectorConfig;
  /** A collection of images has listed them. */
  readonly imagesListed = new Emitter();
  /** Of the current run, or of the next one. */
  evictions: SimEvictionConfig | undefined;
  /** Unexpected exits. */
  readonly crashes: string[] = [];
  readonly #settings: Required<SimNodeSettings>;
  #incarnation: Incarnation | undefined;
  #lives = 0;
  #startedMs = 0;
  /** Steps until podwright is killed. */
  #fuse = 0;
  #pauseMs = 0;
  #apiTroubleMs = 0;
  #slowness = 1;
  #everHung = false;

  constructor(settings: SimNodeSettings) {
    const { clock } = settings;
    this.cgroups = new SimCgroups(() => settings.world.containers.values());
    this.resources = new SimMachineResources(clock, settings.world);
    this.files = settings.files ?? new MemoryFiles(clock.incarnation());
    // Every machine has one; pods on its network do not start without.
    void this.files.makeDirectory("/etc", 0o755);
    void this.files.write("/etc/hosts", "127.0.0.1 localhost\n", 0o644);
    this.firewall = new SimFirewall(() => clock.nowMs);
    this.kernelLog = new SimKernelLog(() => clock.nowMs);
    this.power = new MachinePower(clock, settings.world, this.files, this);
    this.foreignVolumes = new ForeignVolumes(this.files, this.mounts);
    this.drivers = new SimDrivers(clock, this.files, this.mounts);
    this.disks = new SimDisks(clock, this.files);
    this.quotas = new SimProjectQuotas(this.files);
    this.power.onOff(() => loseMounts(this));
    this.files.knowMounts((path) => this.mounts.anyBelow(path));
    this.#settings = { ...calmSettings, faults: new FaultWindows(clock, {}, () => {}), ...settings, files: this.files };
    this.imagePolicy = this.#settings.imagePolicy;
    this.evictions = settings.evictions;
    this.desired = settings.cluster?.desired ?? new Map<string, Pod>();
    settings.cluster?.writeObjects(this.objects);
  }

  get cluster(): SimCluster | undefined {
    return this.#settings.cluster;
  }

  get isUp(): boolean {
    return this.#incarnation !== undefined;
  }

  /** The number of runs, including the current one. */
  get lives(): number {
    return this.#lives;
  }

  /** Conditions that hold. */
  get pressures(): readonly Pressure[] {
    return this.#incarnation?.evictions?.pressures ?? [];
  }

  /** Names of the current incarnation's pending waits. */
  get waits(): string[] {
    return this.#incarnation?.clock.pending() ?? [];
  }

  /** Starts a run of the node with the desired pods, unless one is in progress. */
  start(): void {
    if (this.#incarnation !== undefined || this.power.isOff) return;
    const incarnation = this.#build();
    this.#incarnation = incarnation;
    this.#lives++;
    this.#startedMs = this.#settings.clock.nowMs;
    this.#fuse = 0;
    this.#record({ kind: "note", what: lifeStarted, message: "a life of podwright begins" });
    const { run, controller, gate, manifests } = incarnation;
    manifests.read();
    run(controller.signal).catch((error: unknown) => {
      if (gate.alive && !controller.signal.aborted) this.#crashed(error);
    });
  }

  /** kill -9: nothing of this run has an effect any more. */
  kill(): void {
    const incarnation = this.#incarnation;
    if (incarnation === undefined) return;
    this.#incarnation = undefined;
    incarnation.gate.kill();
    this.quotas.unlock();
    incarnation.clock.kill();
    incarnation.connection.kill();
  }

  /** Kills the node after this many steps from now, and restarts it after a pause. */
  killAfter(steps: number, pauseMs: number): void {
    this.#fuse = steps;
    this.#pauseMs = pauseMs;
  }

  /** Asks podwright to stop (SIGTERM), keeping pods. Waits that remain a minute later are leaks. */
  async stop(run: (forMs: number) => Promise<void>): Promise<string[]> {
    const incarnation = this.#incarnation;
    if (incarnation === undefined) return [];
    incarnation.controller.abort(new Error("podwright is stopping"));
    await run(60_000);
    const waits = incarnation.clock.pending();
    this.kill();
    return waits;
  }

  /** Simulated ms since when this run, the runtime and the machine have worked; infinity while they do not. */
  get soundSinceMs(): number {
    return this.#since(this.#settings.faults.soundSinceMs);
  }

  /** Like {@link soundSinceMs}, but the disk may be slow. */
  get obedientSinceMs(): number {
    return this.#since(this.#settings.faults.obedientSinceMs);
  }

  get config(): KubeletConfig {
    return this.#settings.config;
  }

  /** The node's allocatable resources, where limited. */
  get allocatable(): Readonly<Record<string, string | number>> {
    return this.config.node.resources.allocatable;
  }

  /** Simulated ms of the last disk fault; infinity during one. */
  get diskFaultMs(): number {
    return this.#settings.faults.diskFaultMs;
  }

  /** Simulated ms of the last fault in removals of images; infinity during one. */
  get removalFaultMs(): number {
    return this.#settings.faults.removalFaultMs;
  }

  /** The greatest slowness of calls so far: a call in progress may take effect that late. */
  get slowness(): number {
    return this.#slowness;
  }

  /** False once a call could have an effect long after its caller gave up. */
  get callsAreTimely(): boolean {
    return !this.#everHung && this.#slowness === 1 && this.#settings.world.life === 1 && !this.#settings.world.down;
  }

  setFaults(): void {
    this.#everHung ||= this.#settings.faults.current.hang > 0;
    const { slowness, lookSlowness } = this.#settings.faults.current;
    this.#slowness = Math.max(this.#slowness, slowness, lookSlowness);
    this.#incarnation?.connection.setFaults(this.#settings.faults.current);
    this.#incarnation?.api?.faultsChanged();
  }

  /** The manifests of static pods have changed. */
  staticsChanged(): void {
    if (this.#incarnation?.deliverStatics !== undefined) this.#incarnation.manifests.read();
  }

  add(pod: Pod): void {
    this.desired.set(pod.metadata.uid, pod);
    this.#handle("add", pod, "ManifestAdded", "a manifest was added");
  }

  update(pod: Pod): void {
    this.desired.set(pod.metadata.uid, pod);
    this.#handle("update", pod, "ManifestChanged", "a manifest was changed");
  }

  /** @param graceSeconds if the removal asks for less than the pod's own grace period */
  remove(uid: string, graceSeconds?: number): void {
    const pod = this.desired.get(uid);
    if (pod === undefined) return;
    this.desired.delete(uid);
    this.#handle("remove", pod, "ManifestRemoved", "its manifest was removed", graceSeconds);
  }

  /** ConfigMaps and Secrets change, or are created; reported to a living node. */
  changeObjects(name: "settings" | "late"): void {
    if (name === "late") this.objects.letLateArrive();
    else this.objects.change();
    if (this.cluster !== undefined) return this.cluster.writeObjects(this.objects);
    const changed = [
      { kind: "ConfigMap", namespace: "default", name },
      { kind: "Secret", namespace: "default", name: "credentials" },
    ] as const;
    this.#incarnation?.kubelet.workers.objectsChanged(changed, { code: "ObjectsChanged", message: `${name} changed` });
  }

  /** A user sends a request to the living incarnation. */
  ask(request: (asked: AskedParts, signal: AbortSignal) => void): void {
    if (this.#incarnation !== undefined) request(this.#incarnation.asked, this.#incarnation.controller.signal);
  }

  /** True when the pod is already being stopped, for any reason. */
  isEnding(uid: string): boolean {
    return this.pods().some(({ view }) => view.ref.uid === uid && view.state.kind !== "syncing");
  }

  pods(): KnownPod[] {
    return this.#incarnation?.kubelet.pods.list() ?? [];
  }

  /** The current incarnation's pods. */
  get statuses(): StatusManager | undefined {
    return this.#incarnation?.kubelet.statuses;
  }

  /** Simulated ms of the last fault between the node and the API server, 0: none. */
  get apiTroubleMs(): number {
    return this.cluster?.server.down === undefined ? this.#apiTroubleMs : this.#settings.clock.nowMs;
  }

  /** Whether {@link pods} includes pods of earlier runs and of manifests. */
  get knowsAllPods(): boolean {
    return this.#incarnation?.manifests.isRead === true && this.#incarnation.kubelet.startUp.has("allKnown");
  }

  /** Whether every manifest was read, and pods of earlier runs have passed: the kubelet may collect garbage. */
  get mayCollect(): boolean {
    return this.#incarnation?.manifests.isRead === true && this.#incarnation.kubelet.garbage.isReady;
  }

  #since(ms: number): number {
    const { down, upSinceMs } = this.#settings.world;
    return this.isUp && !down ? Math.max(ms, upSinceMs, this.#startedMs) : Number.POSITIVE_INFINITY;
  }

  #build(): Incarnation {
    const { world, random, faults, config, cluster, onFault } = this.#settings;
    const clock = this.#settings.clock.incarnation();
    const onStep = (): void => this.#step();
    const gate = new Gate({ clock, random: random.fork(), faults: () => faults.current, onStep, onFault });
    const watcher = { onStep: () => gate.step(), onFault };
    const connection = new SimConnection(world, clock, random.fork(), faults.current, watcher);
    const stalls = simPressureStall(this.#settings.clock, () => faults.current.diskDelayMaxMs > 0);
    const record: Surroundings["record"] = (entry) => (gate.alive ? this.#record(entry) : 0);
    const ports = portsOf(this, { world, clock, gate, random: random.fork(), stalls });
    const parts = { machine: this, gate, volumes: () => built.kubelet.volumes };
    const evictions = this.evictions && simEvictions({ record, ports }, parts, this.evictions);
    const place = cluster && this.#place(cluster, clock, gate);
    const { observer } = this.#settings;
    const isAlive = (): boolean => gate.alive;
    const rooms = this.#settings.makeRooms({ record, ports, gate, client: place?.client, isAlive, observer });
    const imageParts = { ports, record, onListed: () => gate.alive && this.imagesListed.emit() };
    const images = imageRoom(world, connection.cri, imageParts, this.imagePolicy);
    const surroundings: Surroundings = {
      config,
      record,
      journaled: () => this.entries,
      objects: this.objects,
      ports,
      rooms: [images, ...rooms, evictions ?? []].flat(),
      cri: connection.cri,
      log: silentLog,
      handlers: world.handlers,
      owns: async () => true,
      ...{ pressure: evictions ?? this.pressure, recorder: this.#settings.recorder, observer: this.#settings.observer },
    };
    const alone = { isRead: () => manifests.isRead, desired: () => this.desired.values() };
    const built: Built = place ? buildInCluster(surroundings, place) : buildAlone(surroundings, alone);
    evictions?.reclaimWith(reclaimOf(built.kubelet, images.collector));
    const manifests = new ManifestReader({
      clock: this.#settings.clock,
      delayMs: () => manifestDelayMs(this.#settings),
      isAlive: () => gate.alive,
      deliver: built.deliverStatics ?? (() => this.#deliverAll()),
    });
    const asked = { kubelet: built.kubelet, images, evictions, cri: connection.cri, journal: { record } };
    return { ...built, connection, clock, gate, controller: new AbortController(), manifests, evictions, asked };
  }

  /** The cluster as one run sees it. */
  #place(cluster: SimCluster, clock: Clock, gate: Gate): ClusterPlace {
    const { faults, random, onRequest, onUpdate } = this.#settings;
    const onFault = (kind: string): void => {
      this.#apiTroubleMs = this.#settings.clock.nowMs;
      this.#settings.onFault(kind);
    };
    const hooks = { onStep: () => gate.step(), onFault, onRequest, onUpdate };
    return clusterPlace(cluster, { clock, random: random.fork(), faults: () => faults.current, ...hooks });
  }

  #deliverAll(): void {
    for (const pod of this.desired.values()) this.#handle("add", pod, "ManifestAdded", "desired at the start");
  }

  #step(): void {
    if (this.#fuse === 0 || --this.#fuse > 0) return;
    this.#settings.onFault("podwright killed between two steps");
    this.kill();
    this.#settings.clock.schedule("podwright to be started again", this.#pauseMs, () => this.start());
  }

  #crashed(error: unknown): void {
    const at = this.#settings.clock.nowMs;
    const message = `podwright ended by itself at ${at} ms: ${errorMessage(error)}`;
    // podwright exits on an unwritable disk, and is restarted.
    const { current, diskFaultEndedMs } = this.#settings.faults;
    const isSound = !current.diskFull && current.diskErrors === 0 && at - diskFaultEndedMs > 60_000;
    if (isSound) this.crashes.push(message);
    this.#settings.onFault("podwright ended by itself");
    this.kill();
    this.#settings.clock.schedule("the supervisor to start podwright again", supervisorMs, () => this.start());
  }

  #handle(op: PodChange["op"], pod: Pod, code: CauseCode, message: string, graceSeconds?: number): void {
    // Unread changes are read with the rest.
    if (this.#incarnation?.manifests.isRead !== true) return;
    const grace = graceSeconds === undefined ? {} : { graceSeconds };
    this.#incarnation.kubelet.handle({ op, pod, cause: { code, message }, ...grace });
  }

  #record(input: JournalInput): number {
    const { clock } = this.#settings;
    const entry = { ...input, seq: this.entries.length + 1, time: clock.wallMs, atMs: clock.nowMs };
    this.entries.push(entry);
    this.#incarnation?.followers?.push(entry);
    this.#settings.onEntry(entry);
    return entry.seq;
  }
}
