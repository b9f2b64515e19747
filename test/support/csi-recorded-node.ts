import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "./bound-pod.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { type ClaimOptions, makeClaim, startClusterDriver } from "./csi-claims.ts";
import type { CsiDriver } from "./csi-driver.ts";
import { until } from "./podwright.ts";
import {
  type Names,
  namesOf,
  recordedAttributes,
  recordedDriver,
  recordedText,
  recordedVolumes,
  renamed,
  ToldCalls,
} from "./csi-recording.ts";

/** As recorded, but that nothing attaches volumes here. */
const driverSpec = {
  attachRequired: false,
  podInfoOnMount: true,
  requiresRepublish: true,
  tokenRequests: [{ audience: "vault", expirationSeconds: 900 }],
};

/** A node with the recorded driver, and pods and volumes of the recording. */
export class RecordedNode implements AsyncDisposable {
  readonly cluster: ClusterNode;
  readonly driver: CsiDriver;
  readonly root: string;
  /** By the pods' names, kept when they are deleted. */
  readonly #uids: Record<string, string> = {};
  readonly #startedAt: number[] = [];

  private constructor(cluster: ClusterNode, driver: CsiDriver) {
    this.cluster = cluster;
    this.driver = driver;
    this.root = cluster.node.podwright.layout.kubeletRoot;
  }

  /** @param directory of the driver */
  static async start(cluster: ClusterNode, directory: string): Promise<RecordedNode> {
    const driver = await startClusterDriver(cluster, directory, driverSpec, { name: recordedDriver });
    driver.volumes.mountsStages = false;
    return new RecordedNode(cluster, driver);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver[Symbol.asyncDispose]();
  }

  /** The recorded claim that was made for a pod, bound to its recorded volume. */
  makeClaim(pod: keyof typeof recordedVolumes, name: string, options: ClaimOptions = {}): void {
    const [handle, volume] = recordedVolumes[pod];
    const attributes = recordedAttributes;
    makeClaim(this.cluster, name, recordedDriver, { ...options, handle, volume, attributes });
  }

  /** @param source of its volume `d` */
  makePod(name: string, source: Fields, container: Fields, spec: Fields = {}): void {
    const volumes = [{ name: "d", ...source }];
    const { admin } = this.cluster.server;
    // Without a grace period to wait for.
    const endsWhenTold = { command: ["sh", "-c", "trap 'exit 0' TERM; sleep 36000 & wait"] };
    const more = { volumes, serviceAccountName: "default", ...spec };
    admin.create(boundPod(name, { ...endsWhenTold, ...container }, more));
    this.#uids[name] = admin.get("pods", `default/${name}`).metadata.uid;
  }

  /** Also of a pod that is deleted. */
  uidOf(pod: string): string {
    return this.#uids[pod] ?? "";
  }

  /** The kubelet starts again: what the driver is told from now on is told by another one. */
  async restart(): Promise<Awaited<ReturnType<ClusterNode["start"]>>> {
    this.#startedAt.push(this.driver.calls.length);
    return await this.cluster.start();
  }

  get #names(): Names {
    return namesOf(this.root, this.#uids);
  }

  get told(): ToldCalls {
    return ToldCalls.of(this.driver.calls, this.#startedAt, this.#names);
  }

  /** Targets of the publishes of the current start. */
  get publishedNow(): ReadonlySet<unknown> {
    const calls = this.driver.calls.slice(this.#startedAt.at(-1));
    const publishes = calls.filter(({ method, endedMs }) => method === "NodePublishVolume" && endedMs !== undefined);
    return new Set(publishes.map(({ request }) => request["targetPath"]));
  }

  /** A file below the root directory with the names that both have. */
  text(path: string): string {
    return renamed(readFileSync(`${this.root}/${path}`, "utf8"), this.#names);
  }

  get files(): VolumeFiles {
    return { tree: this.#tree, mounts: this.#mounts };
  }

  get #tree(): readonly string[] {
    const there = this.#directories.filter((path) => existsSync(path));
    if (there.length === 0) return [];
    const [line, link] = ["%y %m %u:%g %p\n", "%y %m %u:%g %p -> %l\n"];
    // They may go meanwhile.
    const options = ["-ignore_readdir_race", "-type", "l", "-printf", link, "-o", "-printf", line];
    const found = execFileSync("find", [...there, ...options]);
    return withoutDevices(lines(renamed(found.toString(), this.#names)));
  }

  get #mounts(): readonly string[] {
    const table = lines(readFileSync("/proc/self/mountinfo", "utf8")).map((line) => line.split(" "));
    const own = table.flatMap(([, , , source = "", target = ""]) => {
      if (!this.#directories.some((path) => target.startsWith(`${path}/`))) return [];
      return [`${source.replace(/^.*\/volumes\//u, "<driver>/")} ${target}`];
    });
    return withoutDevices(own.map((line) => renamed(line, this.#names)));
  }

  /** Waits until there is no more of it than was recorded. */
  async filesGo({ tree, mounts }: VolumeFiles): Promise<void> {
    await until("files and mounts to go", async () => {
      const { files } = this;
      return files.tree.length <= tree.length && files.mounts.length <= mounts.length;
    });
  }

  get #directories(): readonly string[] {
    const pods = `${this.root}/pods`;
    const uids = existsSync(pods) ? readdirSync(pods) : [];
    const below = ["volume-subpaths", "volumes/kubernetes.io~csi", "volumeDevices"];
    const ofPods = uids.flatMap((uid) => below.map((name) => `${pods}/${uid}/${name}`));
    return [`${this.root}/plugins/kubernetes.io/csi`, ...ofPods];
  }
}

/** What is there of CSI volumes below a kubelet's root directory. */
export interface VolumeFiles {
  /** Type, mode, owner and path. */
  readonly tree: readonly string[];
  /** The mounted part of the driver's volume, and where it is mounted. */
  readonly mounts: readonly string[];
}

/** What was there on the Go kubelet's node. */
export function recordedFiles(name: string): VolumeFiles {
  const [entries = "", mounts = ""] = recordedText(name).split("-- mounts\n");
  const places = lines(mounts).map((line) => line.split(" ").slice(0, 2).join(" "));
  return { tree: withoutDevices(lines(entries)), mounts: withoutDevices(places) };
}

/** The recorded `vol_data.json` of each kind of volume. Go's encoder ends them with a line break, the recording does not. */
export function recordedData(): readonly string[] {
  const files = lines(recordedText("csi-vol-data.txt")).filter((line) => line.startsWith("{"));
  return files.map((line) => `${line}\n`);
}

/** Which loop device it is, and whose, is up to the machine. */
function withoutDevices(all: readonly string[]): readonly string[] {
  return all.map((line) => line.replace(/^b \d+ \S+/u, "b").replace(/^\/loop\d+/u, "/loop")).toSorted();
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
