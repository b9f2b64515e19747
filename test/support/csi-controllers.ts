import { setTimeout as sleep } from "node:timers/promises";
import type { Kubectl } from "./kubectl.ts";

const periodMs = 200;

interface Listed {
  readonly kind: "PersistentVolumeClaim" | "PersistentVolume" | "VolumeAttachment";
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly spec: {
    readonly attacher?: string;
    readonly accessModes?: readonly string[];
    readonly volumeMode?: string;
    readonly volumeName?: string;
    readonly storageClassName?: string;
    readonly persistentVolumeReclaimPolicy?: string;
    readonly resources?: { readonly requests?: { readonly storage?: string } };
    readonly capacity?: { readonly storage?: string };
    readonly csi?: { readonly driver?: string };
  };
  readonly status?: {
    readonly phase?: string;
    readonly attached?: boolean;
    readonly capacity?: { readonly storage?: string };
    readonly allocatedResources?: { readonly storage?: string };
  };
}

/**
 * Stands in for a driver's external-provisioner, external-attacher and external-resizer at any API server, as far as tests
 * need them: it polls, and answers what Kubernetes' own controllers ask of them.
 */
export class CsiControllers implements AsyncDisposable {
  readonly #kubectl: Kubectl;
  readonly #driver: string;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  /** Failed polls, for the test's report. */
  readonly errors: unknown[] = [];

  /** @param driver the driver's name, which is also its StorageClass's provisioner */
  constructor(kubectl: Kubectl, driver: string) {
    this.#kubectl = kubectl;
    this.#driver = driver;
    this.#done = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        const kinds = "persistentvolumeclaims,persistentvolumes,volumeattachments";
        const text = await this.#kubectl.succeed("get", kinds, "--all-namespaces", "--output=json");
        const { items } = JSON.parse(text) as { readonly items: readonly Listed[] };
        for (const item of items) await this.#look(item, items);
      } catch (error) {
        this.errors.push(error);
      }
      await sleep(periodMs);
    }
  }

  async #look(item: Listed, all: readonly Listed[]): Promise<void> {
    if (item.kind === "VolumeAttachment") await this.#attach(item);
    else if (item.kind === "PersistentVolume") await this.#reclaim(item);
    else {
      await this.#provision(item);
      await this.#resize(item, all);
    }
  }

  async #provision({ metadata, spec }: Listed): Promise<void> {
    const { annotations = {}, name, namespace, uid } = metadata;
    const isAsked =
      annotations["volume.kubernetes.io/storage-provisioner"] === this.#driver &&
      annotations["volume.kubernetes.io/selected-node"] !== undefined;
    if (!isAsked || spec.volumeName !== undefined || metadata.deletionTimestamp !== undefined) return;
    await this.#create({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: {
        name: `pvc-${uid}`,
        annotations: { "pv.kubernetes.io/provisioned-by": this.#driver },
      },
      spec: {
        accessModes: spec.accessModes,
        capacity: spec.resources?.requests,
        claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", name, namespace, uid },
        csi: { driver: this.#driver, volumeHandle: `handle-${uid}` },
        persistentVolumeReclaimPolicy: "Delete",
        storageClassName: spec.storageClassName,
        volumeMode: spec.volumeMode,
      },
    });
  }

  async #reclaim({ metadata, spec, status }: Listed): Promise<void> {
    if (spec.csi?.driver !== this.#driver || status?.phase !== "Released") return;
    if (spec.persistentVolumeReclaimPolicy !== "Delete" || metadata.deletionTimestamp !== undefined) return;
    await this.#kubectl.succeed("delete", "persistentvolume", metadata.name, "--wait=false");
  }

  async #attach({ metadata, spec, status }: Listed): Promise<void> {
    if (spec.attacher !== this.#driver || metadata.deletionTimestamp !== undefined || status?.attached === true) return;
    await this.#patchStatus(["volumeattachment", metadata.name], { attached: true });
  }

  /** KEP-1790: the controller expands the volume first, then the node completes it. */
  async #resize({ metadata, spec, status }: Listed, all: readonly Listed[]): Promise<void> {
    const wanted = spec.resources?.requests?.storage;
    const volume = all.find(({ kind, metadata: { name } }) => kind === "PersistentVolume" && name === spec.volumeName);
    const isGrown = status?.phase === "Bound" && status.capacity?.storage !== wanted;
    if (volume?.spec.csi?.driver !== this.#driver || !isGrown || status.allocatedResources?.storage === wanted) return;
    const grown = JSON.stringify({ spec: { capacity: { storage: wanted } } });
    await this.#kubectl.succeed("patch", "persistentvolume", volume.metadata.name, "--patch", grown);
    await this.#patchStatus(["persistentvolumeclaim", metadata.name, `--namespace=${metadata.namespace}`], {
      allocatedResources: { storage: wanted },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
      conditions: [{ type: "FileSystemResizePending", status: "True", lastTransitionTime: new Date().toISOString() }],
    });
  }

  async #patchStatus(what: readonly string[], status: object): Promise<void> {
    const patch = JSON.stringify({ status });
    await this.#kubectl.succeed("patch", ...what, "--subresource=status", "--type=merge", "--patch", patch);
  }

  async #create(object: object): Promise<void> {
    const { code, stderr } = await this.#kubectl.run(["create", "-f", "-"], Buffer.from(JSON.stringify(object)));
    if (code !== 0 && !stderr.includes("AlreadyExists")) throw new Error(stderr);
  }
}
