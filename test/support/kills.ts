import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { ContainerState, PodSandboxState } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { Label } from "../../src/runtime/config/labels.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { SimRandom } from "../../src/sim/random.ts";
import type { RunningCommand } from "./command.ts";
import { recordProblems } from "./pod-records.ts";
import { engineAnswers, type Podwright, sleep, until } from "./podwright.ts";
import { parseDeeds, richKinds, richPod, type RichPod } from "./rich-pods.ts";

export interface KillOptions {
  readonly seed: number;
  /** How often the engine is killed. */
  readonly kills: number;
  /** The initial, and maximum, number of pods. */
  readonly pods: number;
}

const firstHostPort = 21_000;
/** Time to settle after the last kill: interrupted starts count, and their back-off is up to 5 min. */
const settleLimitMs = 7 * 60_000;

/**
 * Pods are added, removed and replaced while the engine is killed at random moments and restarted. Checks the runtime
 * itself before and after each kill, and finally the records that the containers kept.
 */
export async function surviveKills(podwright: Podwright, options: KillOptions): Promise<void> {
  console.log(`seed ${options.seed}: ${options.kills} kills, ${options.pods} pods`);
  const churn = await Churn.start(podwright, options);
  for (let kill = 0; kill < options.kills; kill++) await churn.liveAndDie(kill);
  await churn.settle();
  await churn.end();
}

/** The last request about a pod name, and whether the engine has acknowledged it. */
interface Slot {
  readonly name: string;
  readonly index: number;
  version: number;
  wanted: RichPod | undefined;
  promised: boolean;
}

class Churn {
  readonly #podwright: Podwright;
  readonly #random: SimRandom;
  readonly #slots: Slot[];
  readonly #records: string;
  readonly #client: EngineClient;
  readonly #cri: Cri & Disposable;
  /** IDs of instances that must not change, by `name/container`. */
  readonly #lasting = new Map<string, string>();
  /** IDs of instances whose start the runtime undid, by `name/container`. */
  readonly #cutOff = new Map<string, Set<unknown>>();
  #journalSeq = 0;
  #engine: RunningCommand | undefined;

  private constructor(podwright: Podwright, { seed, pods }: KillOptions) {
    this.#podwright = podwright;
    this.#random = new SimRandom(seed);
    this.#records = podwright.path("records");
    const { engineSocket, stateDirectory } = podwright.layout;
    this.#client = new EngineClient(unixTransport(engineSocket), stateDirectory);
    this.#cri = podwright.connect();
    this.#slots = Array.from({ length: pods }, (_, index) => {
      return { name: `pod-${index}`, index, version: 0, wanted: undefined, promised: true };
    });
  }

  static async start(podwright: Podwright, options: KillOptions): Promise<Churn> {
    const churn = new Churn(podwright, options);
    await mkdir(churn.#records);
    // Once to its end: preparing the runtime is not tested.
    churn.#startEngine();
    await churn.#answers();
    for (const slot of churn.#slots) churn.#want(slot);
    return churn;
  }

  /** One run of an engine: it is started, perhaps gets a request, and is killed at a random moment. */
  async liveAndDie(kill: number): Promise<void> {
    if (this.#engine === undefined) this.#startEngine();
    const diesEarly = kill > 0 && this.#random.chance(0.25);
    const lifeMs = this.#random.integer(0, diesEarly ? 800 : 3_000);
    const changes = this.#random.integer(0, 2);
    if (!diesEarly) {
      await this.#answers();
      await this.#readJournal();
      for (let change = 0; change < changes; change++) this.#change();
      // May be in progress when the engine dies.
      void this.#ask();
    }
    await sleep(lifeMs);
    await this.#look(`before kill ${kill}`);
    await this.#kill();
    await this.#look(`after kill ${kill}`);
  }

  /** Starts a surviving engine, and waits until everything is as requested. */
  async settle(): Promise<void> {
    this.#startEngine();
    await this.#answers();
    await until("everything to be asked", async () => {
      await this.#ask();
      return this.#slots.every(({ promised }) => promised);
    });
    await this.#settled(this.#slots.flatMap((slot) => slot.wanted ?? []));
    await this.#look("at the end");
    await this.#readJournal();
  }

  async #settled(wanted: readonly RichPod[]): Promise<void> {
    let pods: readonly PodView[] = [];
    const areAsWanted = async (): Promise<boolean> => {
      pods = await this.#client.pods();
      return unsettled(wanted, pods).length === 0;
    };
    try {
      await until("pods to be as wanted", areAsWanted, settleLimitMs);
    } catch (error) {
      const names = unsettled(wanted, pods);
      const views = pods.filter(({ name }) => names.includes(name));
      const histories = await Promise.all(
        wanted.filter(({ name }) => names.includes(name)).map(({ name }) => this.#history(name)),
      );
      const told = [`not as wanted: ${names.join(", ")}`, JSON.stringify(views), ...histories].join("\n");
      throw new Error(told, { cause: error });
    }
  }

  /** Stops everything and reads the records. */
  async end(): Promise<void> {
    await Promise.all(this.#slots.flatMap(({ name, wanted }) => (wanted ? [this.#client.stop(name, undefined)] : [])));
    await until("pods to be gone", async () => (await this.#client.pods()).length === 0, 60_000);
    this.#cri[Symbol.dispose]();
    const problems: string[] = [];
    for (const { name, index } of this.#slots) {
      const text = await readFile(`${this.#records}/${name}/deeds`, "utf8").catch(() => "");
      const cutOff = (container: string): number => this.#cutOff.get(`${name}/${container}`)?.size ?? 0;
      const found = recordProblems(kindOf(index), parseDeeds(text), cutOff);
      if (found.length > 0) console.error(await this.#history(name));
      problems.push(...found.map((problem) => `${name}: ${problem}`));
    }
    assert.deepEqual(problems, []);
  }

  /** Collects interrupted starts: containerd kills what it is starting for a client that disconnects. */
  async #readJournal(): Promise<void> {
    for (const { seq, what, message, pod, container, data } of await this.#client.entries({
      sinceSeq: this.#journalSeq + 1,
    })) {
      this.#journalSeq = seq;
      if (what !== "ContainerDied" || !message.endsWith("(StartError)")) continue;
      const key = `${pod?.name}/${container}`;
      const ids = this.#cutOff.get(key) ?? new Set();
      this.#cutOff.set(key, ids.add(data?.["id"]));
    }
  }

  /** The journal of a pod name, for diagnostics. */
  async #history(name: string): Promise<string> {
    const entries = (await this.#client.entries({})).filter(
      ({ pod, what }) => pod?.name === name || what === "PodwrightStarted",
    );
    const lines = entries.map(({ time, kind, what, container = "", message, pod }) => {
      return `${new Date(time).toISOString().slice(11, 23)} ${pod?.uid.slice(0, 8) ?? ""} ${kind} ${container} ${what}: ${message}`;
    });
    return [`--- ${name}`, ...lines].join("\n");
  }

  #startEngine(): void {
    this.#engine = this.#podwright.start(["engine", "--state-dir", this.#podwright.layout.stateDirectory]);
  }

  async #kill(): Promise<void> {
    const engine = this.#engine;
    assert.ok(engine !== undefined);
    const { child } = engine;
    assert.ok(child.exitCode === null && child.signalCode === null, `the engine ended by itself: ${engine.stderr}`);
    child.kill("SIGKILL");
    await engine.ended;
    this.#engine = undefined;
  }

  async #answers(): Promise<void> {
    await until("the engine to answer", () => engineAnswers(this.#client), 30_000);
  }

  #want(slot: Slot): void {
    slot.version++;
    slot.wanted = richPod(kindOf(slot.index), slot.name, slot.version, this.#records, firstHostPort + slot.index);
    slot.promised = false;
  }

  /** Parses the kernel's OOM kill reports. A report has several lines. */
  #change(): void {
    const slot = this.#random.pick(this.#slots as [Slot, ...Slot[]]);
    for (const key of this.#lasting.keys()) if (key.startsWith(`${slot.name}/`)) this.#lasting.delete(key);
    if (slot.wanted !== undefined && this.#random.chance(0.4)) {
      slot.wanted = undefined;
      slot.promised = false;
    } else this.#want(slot);
  }

  /** Sends requests that are not acknowledged yet; those interrupted by a kill are repeated in the next run. */
  async #ask(): Promise<void> {
    const open = this.#slots.filter(({ promised }) => !promised);
    await Promise.allSettled(
      open.map(async (slot) => {
        const { wanted } = slot;
        if (wanted === undefined) await this.#stop(slot.name);
        else await this.#client.apply({ pods: [wanted.manifest], configMaps: [wanted.configMap], secrets: [] });
        slot.promised = slot.wanted === wanted;
      }),
    );
  }

  /** The previous request may have been executed without a response: then the pod is stopping or gone. */
  async #stop(name: string): Promise<void> {
    const pods = await this.#client.pods();
    if (pods.some((pod) => pod.name === name)) await this.#client.stop(name, undefined);
  }

  /** No two instances of one container, no two sandboxes of one pod; and lasting instances are unchanged. */
  async #look(when: string): Promise<void> {
    const { containers } = await this.#cri.runtime.listContainers({
      filter: { state: { state: ContainerState.CONTAINER_RUNNING } },
    });
    const { items } = await this.#cri.runtime.listPodSandbox({
      filter: { state: { state: PodSandboxState.SANDBOX_READY } },
    });
    assertUnique(
      items.map(({ labels }) => labels[Label.podName] ?? ""),
      `sandboxes ${when}`,
    );
    const running = new Map(containers.map(({ id, labels }) => [instanceKey(labels), id]));
    assertUnique(
      containers.map(({ labels }) => instanceKey(labels)),
      `containers ${when}`,
    );
    for (const [key, id] of this.#lasting) {
      assert.equal(running.get(key), id, `${key} was restarted or stopped ${when}`);
    }
    for (const { name, wanted, promised } of this.#slots) {
      if (wanted === undefined || !promised) continue;
      for (const container of wanted.lasting) {
        const found = containers.find(({ labels }) => instanceKey(labels) === `${name}/${container}`);
        if (found === undefined || !(await this.#isOf(found.id, wanted))) continue;
        this.#lasting.set(`${name}/${container}`, found.id);
      }
    }
  }

  /** False: an instance of the previous version that is being stopped. */
  async #isOf(containerId: string, { version }: RichPod): Promise<boolean> {
    const { info } = await this.#cri.runtime.containerStatus({ containerId, verbose: true });
    return (info["info"] ?? "").includes(`{"key":"VERSION","value":"${version}"}`);
  }
}

function kindOf(index: number): RichPod["kind"] {
  return richKinds[index % richKinds.length] ?? richKinds[0];
}

function instanceKey(labels: Readonly<Record<string, string>>): string {
  return `${labels[Label.podName]}/${labels[Label.containerName]}`;
}

function assertUnique(names: readonly string[], what: string): void {
  const seen = new Set<string>();
  for (const name of names) {
    assert.ok(!seen.has(name), `two of ${name} among the ${what}`);
    seen.add(name);
  }
}

/** What is not as requested, in a few words each. */
function unsettled(wanted: readonly RichPod[], pods: readonly PodView[]): string[] {
  const strangers = pods.filter((pod) => !wanted.some(({ name }) => name === pod.name));
  return [
    ...wanted.filter((pod) => !isSettled(pod, pods)).map(({ name }) => name),
    ...strangers.map(({ name, uid, state }) => `${name} (${uid}) is still ${state}`),
  ];
}

function isSettled({ name, kind }: RichPod, pods: readonly PodView[]): boolean {
  const views = pods.filter((pod) => pod.name === name);
  const [view] = views;
  if (view === undefined || views.length > 1) return false;
  if (kind === "job") return view.phase === "Succeeded" && view.state === "terminated";
  if (kind === "restarter") return view.containers.every((container) => container.restartCount > 0 || container.ready);
  return view.state === "syncing" && view.ready;
}
