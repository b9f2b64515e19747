import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { type JournalEntry, type JournalInput, lifeStarted } from "../../journal/entry.ts";
import { Kubelet, type KnownPod, type KubeletConfig } from "../../kubelet.ts";
import type { DecisionRecorder } from "../../pods/decision-recorder.ts";
import type { PodChange } from "../../pods/pod-change.ts";
import type { IncarnationClock, SimClock } from "../clock.ts";
import { simCompression } from "../compression.ts";
import { SimConnection } from "../cri.ts";
import { MemoryFiles } from "../files.ts";
import { Gate } from "../gate.ts";
import { silentLog, SimCgroups, SimMounts, simProcesses } from "../machine.ts";
import { SimNetworkProbes } from "../network-probes.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import { SimVolumeFiles } from "../volume-files.ts";
import { FaultWindows } from "./faults.ts";
import { usualConfig } from "./node-config.ts";
import { SimObjects } from "./objects.ts";

/** A journal entry of a simulated life: with the simulated time at which it was written. */
export interface SimEntry extends JournalEntry {
  readonly atMs: number;
}

interface Incarnation {
  readonly kubelet: Kubelet;
  readonly connection: SimConnection;
  readonly clock: IncarnationClock;
  readonly gate: Gate;
  readonly controller: AbortController;
}

/** Without what may be left out all is well, and nobody watches. */
export interface SimNodeSettings {
  readonly clock: SimClock;
  readonly world: RuntimeWorld;
  readonly random: SimRandom;
  readonly files?: MemoryFiles;
  readonly config?: KubeletConfig;
  readonly faults?: FaultWindows;
  /** Told of each fault that strikes. */
  readonly onFault?: (kind: string) => void;
  /** Told of each entry of the journal. */
  readonly onEntry?: (entry: SimEntry) => void;
  readonly recorder?: DecisionRecorder | undefined;
}

/** How long a supervisor waits before it starts podwright again that ended by itself. */
const supervisorMs = 5000;

/**
 * A whole node on a simulated machine: the production managers behind simulated ports. The machine (files, cgroups,
 * runtime) outlives the node, which can be killed between any two steps and started again.
 */
export class SimNode {
  readonly files: MemoryFiles;
  readonly cgroups = new SimCgroups();
  readonly mounts = new SimMounts();
  readonly objects = new SimObjects();
  readonly entries: SimEntry[] = [];
  /** What is wanted, as the sources would say it to a node that starts. */
  readonly desired = new Map<string, Pod>();
  /** How lives ended that should have gone on. */
  readonly crashes: string[] = [];
  readonly #settings: Required<SimNodeSettings>;
  #incarnation: Incarnation | undefined;
  #lives = 0;
  /** Steps until podwright is killed. */
  #fuse = 0;
  #pauseMs = 0;
  #slowness = 1;

  constructor(settings: SimNodeSettings) {
    const { clock } = settings;
    const calm = new FaultWindows(clock, {}, () => {});
    this.files = settings.files ?? new MemoryFiles(clock.incarnation());
    this.#settings = {
      faults: calm,
      onFault: () => {},
      onEntry: () => {},
      config: usualConfig,
      recorder: undefined,
      ...settings,
      files: this.files,
    };
  }

  get isUp(): boolean {
    return this.#incarnation !== undefined;
  }

  /** How many lives the node has had, this one included. */
  get lives(): number {
    return this.#lives;
  }

  /** Names of what the living incarnation waits for. */
  get waits(): string[] {
    return this.#incarnation?.clock.pending() ?? [];
  }

  /** Starts a life of the node with what is wanted at this moment, unless one is going on. */
  start(): void {
    if (this.#incarnation !== undefined) return;
    const incarnation = this.#build();
    this.#incarnation = incarnation;
    this.#lives++;
    this.#fuse = 0;
    this.#record({ kind: "note", what: lifeStarted, message: "a life begins" });
    for (const pod of this.desired.values()) this.#handle("add", pod, "ManifestFound", "wanted when podwright started");
    const { kubelet, controller, gate } = incarnation;
    kubelet.run(controller.signal).then(
      () => {},
      (error: unknown) => {
        if (!gate.alive || controller.signal.aborted) return;
        this.#crashed(error);
      },
    );
  }

  /** kill -9: nothing of this life has an effect any more. */
  kill(): void {
    const incarnation = this.#incarnation;
    if (incarnation === undefined) return;
    this.#incarnation = undefined;
    incarnation.gate.kill();
    incarnation.clock.kill();
    incarnation.connection.kill();
  }

  /** Killed in the middle of what it does, after so many steps from now, and started again a while later. */
  killAfter(steps: number, pauseMs: number): void {
    this.#fuse = steps;
    this.#pauseMs = pauseMs;
  }

  /** Asks podwright to end (SIGTERM): pods stay. What it still waits for a minute later is what it forgot to let go of. */
  async stop(run: (forMs: number) => Promise<void>): Promise<string[]> {
    const incarnation = this.#incarnation;
    if (incarnation === undefined) return [];
    incarnation.controller.abort(new Error("podwright is asked to end"));
    await run(60_000);
    const waits = incarnation.clock.pending();
    this.kill();
    return waits;
  }

  /** The greatest slowness of calls so far: for so long one that is under way may still be carried out. */
  get slowness(): number {
    return this.#slowness;
  }

  setFaults(): void {
    this.#slowness = Math.max(this.#slowness, this.#settings.faults.current.slowness);
    this.#incarnation?.connection.setFaults(this.#settings.faults.current);
  }

  add(pod: Pod): void {
    this.desired.set(pod.metadata.uid, pod);
    this.#handle("add", pod, "ManifestAdded", "a manifest was added");
  }

  update(pod: Pod): void {
    this.desired.set(pod.metadata.uid, pod);
    this.#handle("update", pod, "ManifestChanged", "a manifest was changed");
  }

  remove(uid: string): void {
    const pod = this.desired.get(uid);
    if (pod === undefined) return;
    this.desired.delete(uid);
    this.#handle("remove", pod, "ManifestRemoved", "its manifest was removed");
  }

  /** ConfigMaps and Secrets change, or come at last; told to the node when it lives. */
  changeObjects(name: "settings" | "late"): void {
    if (name === "late") this.objects.letLateArrive();
    else this.objects.change();
    const changed = [
      { kind: "ConfigMap", namespace: "default", name },
      { kind: "Secret", namespace: "default", name: "credentials" },
    ] as const;
    const cause = { code: "ObjectsChanged", message: `${name} changed` };
    this.#incarnation?.kubelet.objectsChanged(changed, cause);
  }

  /** True when the pod is being stopped already, whatever for. */
  isEnding(uid: string): boolean {
    return this.pods().some(({ view }) => view.ref.uid === uid && view.state.kind !== "syncing");
  }

  pods(): KnownPod[] {
    return this.#incarnation?.kubelet.pods() ?? [];
  }

  /** Whether {@link pods} has what earlier lives left behind. */
  get knowsAllPods(): boolean {
    return this.#incarnation?.kubelet.knowsAllPods() ?? false;
  }

  #build(): Incarnation {
    const { world, files, random, faults, onFault } = this.#settings;
    const clock = this.#settings.clock.incarnation();
    const gateRandom = random.fork();
    const onStep = (): void => this.#step();
    const gate = new Gate({ clock, random: gateRandom, faults: () => faults.current, onStep, onFault });
    const watcher = { onStep: () => gate.step(), onFault };
    const connection = new SimConnection(world, clock, random.fork(), faults.current, watcher);
    const guarded = gate.through(files, "files", ["watch"]);
    const kubelet = new Kubelet(
      {
        ports: {
          clock,
          random: random.fork(),
          files: guarded,
          compression: gate.through(simCompression(guarded), "plain", ["gunzip"]),
          processes: simProcesses,
          mounts: gate.through(this.mounts, "machine"),
          volumeFiles: gate.through(new SimVolumeFiles(files), "files"),
          cgroups: gate.through(this.cgroups, "machine"),
          networkProbes: gate.through(new SimNetworkProbes(world, clock), "plain"),
        },
        cri: connection.cri,
        journal: { record: (entry) => (gate.alive ? this.#record(entry) : 0) },
        log: silentLog,
        objects: this.objects,
        features: { recursiveReadOnlyMounts: false, userNamespaces: true },
        sourcesReady: () => true,
        owns: async () => true,
        recorder: this.#settings.recorder,
      },
      this.#settings.config,
      () => {},
    );
    return { kubelet, connection, clock, gate, controller: new AbortController() };
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
    // A disk that can't be written to is a reason to end, and to be started again.
    const { current, diskFaultEndedMs } = this.#settings.faults;
    const isSound = !current.diskFull && current.diskErrors === 0 && at - diskFaultEndedMs > 60_000;
    if (isSound) this.crashes.push(message);
    this.#settings.onFault("podwright ended by itself");
    this.kill();
    this.#settings.clock.schedule("the supervisor to start podwright again", supervisorMs, () => this.start());
  }

  #handle(op: PodChange["op"], pod: Pod, code: string, message: string): void {
    this.#incarnation?.kubelet.handle({ op, pod, cause: { code, message } });
  }

  #record(input: JournalInput): number {
    const { clock } = this.#settings;
    const entry = { ...input, seq: this.entries.length + 1, time: clock.wallMs, atMs: clock.nowMs };
    this.entries.push(entry);
    this.#settings.onEntry(entry);
    return entry.seq;
  }
}
