import { ManualClock } from "./manual-clock.ts";
import { TestStorage } from "./storage.ts";
import { cause, needs, VolumesUnderTest } from "./volumes.ts";
import { onAbort } from "../../src/base/abort.ts";
import type { PersistentVolume } from "../../src/api/persistent-volume.ts";
import type { Pod } from "../../src/api/pod.ts";
import { NodeVolumes } from "../../src/node/node-volumes.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { SimLoopDevices, SimMounts } from "../../src/sim/machine.ts";
import { SimVolumeFiles } from "../../src/sim/volume-files.ts";
import { AwaitedError } from "../../src/volumes/awaited-error.ts";
import type { AttachmentRequest, PreparedVolume, VolumePlugin } from "../../src/volumes/volume-plugin.ts";
import type { VolumeSpec } from "../../src/volumes/volume-spec.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";

/** A driver whose volumes must be attached. */
export class AttachedPlugin implements VolumePlugin {
  readonly name = "example.org~attached";
  readonly followsObjects = false;
  readonly setUps: unknown[] = [];
  /** Why volumes cannot be set up. */
  problem: Error | undefined;
  /** The signals of upkeeps, which end with them. */
  readonly kept: AbortSignal[] = [];
  attaches: "yes" | "no" | "unknown" = "yes";
  /** Pods whose volumes exceed its limit are rejected. */
  hasLimit = true;
  prepared = 0;
  limits = 0;
  readonly #full = (): void => void this.limits++;
  #change = Promise.withResolvers<void>();

  /** Its object changes. */
  change(changed: Partial<Pick<AttachedPlugin, "attaches" | "hasLimit">>): void {
    Object.assign(this, changed);
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  owns({ persistentVolume }: VolumeSpec): boolean {
    return persistentVolume?.spec.csi !== undefined;
  }

  async attachment({ persistentVolume }: VolumeSpec): Promise<AttachmentRequest | undefined> {
    const changed = this.#change.promise;
    if (this.attaches === "unknown") throw new AwaitedError("driver d has no CSIDriver object", changed);
    if (this.attaches === "no") return undefined;
    const handle = persistentVolume?.spec.csi?.volumeHandle ?? "";
    const names = { volumeName: `kubernetes.io/csi/d^${handle}`, handle, attachmentName: `csi-${handle}` };
    return { ...names, limitReached: this.hasLimit ? this.#full : undefined, changed };
  }

  prepare(_pod: Pod, { name }: VolumeSpec): PreparedVolume {
    this.prepared++;
    return {
      ...{ name, type: "csi", hostPath: `/csi/${name}`, readOnly: false, own: true },
      isSetUp: async () => false,
      setUp: async (_signal, attached) => {
        if (this.problem !== undefined) throw this.problem;
        this.setUps.push(attached);
      },
      upkeeps: [
        {
          name: "test",
          isDue: () => true,
          run: async (upkeep) => {
            this.kept.push(upkeep);
            const ended = Promise.withResolvers<void>();
            using _abort = onAbort(upkeep, ended.resolve);
            await ended.promise;
          },
        },
      ],
    };
  }

  async reconstruct(): Promise<undefined> {}
}

export class Fixture extends VolumesUnderTest {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;
  readonly storage = new TestStorage();
  readonly node = new NodeVolumes();
  readonly driver = new AttachedPlugin();
  readonly rejected: unknown[] = [];
  labels: Readonly<Record<string, string>> = { "kubernetes.io/hostname": "n1" };

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new SimMounts();
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices: new SimLoopDevices() });
    this.clock = clock;
    this.files = files;
    this.mounts = mounts;
    this.begin();
  }

  begin(byController = true): void {
    const { storage, node } = this;
    this.restart({ cluster: { storage, node, byController, labels: () => this.labels } }, [this.driver]);
    this.manager.connect((_pod, rejection) => this.rejected.push(rejection));
  }

  /** A claim `ns/<name>` that is bound to a volume of the node's directory `/disks/<name>`. */
  async bound(name: string, changed: Partial<PersistentVolume["spec"]> = {}): Promise<void> {
    await this.files.makeDirectory(`/disks/${name}`, 0o755);
    this.storage.bind(name, { local: { path: `/disks/${name}` }, ...changed });
  }

  /** Starts the set-up, and lets it do what it can at once. */
  async begins(pod: Pod): Promise<{ readonly mounted: Promise<ReadonlyMap<string, unknown>> }> {
    const mounted = this.manager.mount(pod, needs, cause, signal);
    mounted.catch(() => {});
    await this.clock.advance(0);
    return { mounted };
  }

  get failures(): string[] {
    const isFailure = (what: string, result?: string): boolean => what === "VolumeUnprocessed" || result === "failed";
    return this.entries.filter((entry) => isFailure(entry.what, resultOf(entry))).map(({ message }) => message);
  }
}

function resultOf(entry: object): string | undefined {
  return "result" in entry ? String(entry.result) : undefined;
}
