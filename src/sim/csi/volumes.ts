import { RpcError } from "../../ports/rpc.ts";
import { type Fields, fieldsAt } from "../api-server/values.ts";
import type { MemoryFiles } from "../files.ts";
import type { SimMounts } from "../machine.ts";
import type { DriverKind } from "./driver-kind.ts";

/** The subject of a driver's call. */
export interface CallAbout {
  readonly method: "stage" | "unstage" | "publish" | "unpublish" | "expand";
  readonly volume: string;
  /** The staging or target path. */
  readonly target: string;
  /** Of a publish: its staging path; empty: not staged. */
  readonly staging: string;
}

type Request = Readonly<Record<string, unknown>>;

interface Publishing {
  readonly volume: string;
  readonly target: string;
  readonly staging: string;
  readonly request: Request;
}

/** Reports a call that the specification forbids. */
export type Violation = (rule: string, detail: string) => void;

/** The drivers' mounts on the simulated machine. */
export class DriverVolumes {
  readonly #files: MemoryFiles;
  readonly #mounts: SimMounts;
  /** Staging paths by volume. */
  readonly #staged = new Map<string, string>();
  /** Volumes by target. */
  readonly #published = new Map<string, string>();
  /** Mount options, by staging path and target. */
  readonly #options = new Map<string, string>();
  /** Targets that are devices. */
  readonly #devices = new Set<string>();
  /** Bytes by volume; one that has never grown has none. */
  readonly #sizes = new Map<string, bigint>();
  /** Called for calls that the specification forbids. */
  onViolation: Violation = () => {};

  constructor(files: MemoryFiles, mounts: SimMounts) {
    this.#files = files;
    this.#mounts = mounts;
  }

  /** Paths of volumes that are staged, by volume. */
  get staged(): ReadonlyMap<string, string> {
    return this.#staged;
  }

  /** Volumes that are published, by target. */
  get published(): ReadonlyMap<string, string> {
    return this.#published;
  }

  /** Bytes of volumes that were expanded on this node. */
  get sizes(): ReadonlyMap<string, bigint> {
    return this.#sizes;
  }

  /** Every path where a driver has mounted something. */
  get targets(): readonly string[] {
    return [...this.#staged.values(), ...this.#published.keys()];
  }

  /** Whether the volume is staged or published. */
  isMounted(volume: string): boolean {
    return this.#staged.has(volume) || [...this.#published.values()].includes(volume);
  }

  /** A mounted path whose content is gone; undefined: none. */
  damaged(): string | undefined {
    return [...this.#published.keys()].find((target) => {
      return this.#files.ownerOf(this.#devices.has(target) ? target : `${target}/data`) === undefined;
    });
  }

  /** Removes all mounts when the machine is switched off. */
  powerOff(): void {
    const targets = [...this.#published.keys()];
    const devices = new Set(this.#devices);
    this.#staged.clear();
    this.#published.clear();
    this.#devices.clear();
    this.#options.clear();
    // Mount points are empty directories, and empty files of devices.
    for (const target of targets) {
      void this.#mounts.unmount(target);
      if (devices.has(target)) void this.#files.write(target, "", 0o600);
      else void this.#files.removeTree(target).then(() => this.#files.makeDirectory(target, 0o750));
    }
  }

  /** Undefined: not a method on a volume. */
  operation(
    kind: DriverKind,
    method: string,
    request: Request,
  ): { readonly about: CallAbout; readonly work: () => object } | undefined {
    const volume = volumeOf(request);
    const staging = textOf(request, "stagingTargetPath");
    const target = textOf(request, "targetPath");
    switch (method) {
      case "nodeStageVolume":
        return {
          about: { method: "stage", volume, target: staging, staging },
          work: () => this.#stage(volume, staging, request),
        };
      case "nodeUnstageVolume":
        return {
          about: { method: "unstage", volume, target: staging, staging },
          work: () => this.#unstage(volume, staging),
        };
      case "nodePublishVolume":
        return {
          about: { method: "publish", volume, target, staging },
          work: () => this.#publish(kind, { volume, target, staging, request }),
        };
      case "nodeUnpublishVolume":
        return {
          about: { method: "unpublish", volume, target, staging: "" },
          work: () => this.#unpublish(volume, target),
        };
      case "nodeExpandVolume": {
        const path = textOf(request, "volumePath");
        return {
          about: { method: "expand", volume, target: path, staging },
          work: () => this.#expand(volume, path, requiredBytes(request)),
        };
      }
      default:
        return undefined;
    }
  }

  #expand(volume: string, path: string, bytes: bigint): object {
    if (this.#published.get(path) !== volume) {
      this.onViolation("volumes are expanded where they are published", `${volume} at ${path}`);
      throw failed("NotFound", `${volume} is not at ${path}`);
    }
    const before = this.#sizes.get(volume) ?? 0n;
    if (bytes < before) this.onViolation("volumes never shrink", `${volume} from ${before} to ${bytes}`);
    this.#sizes.set(volume, bytes);
    return {};
  }

  /** As on a real machine they do not change while it is mounted, and are those of what it is published from. */
  #judgeOptions(path: string, from: string, request: Request): string[] {
    const options = mountFlags(request);
    const isMounted = this.#options.has(path);
    for (const known of [path, ...(isMounted ? [] : [from])]) {
      const before = this.#options.get(known) ?? String(options);
      if (before !== String(options)) {
        this.onViolation(
          "volumes keep their mount options",
          `${known} has "${before}", ${path} is to have "${options.join()}"`,
        );
      }
    }
    if (!isMounted) this.#options.set(path, String(options));
    return options;
  }

  #stage(volume: string, path: string, request: Request): object {
    const known = this.#staged.get(volume);
    if (known !== undefined && known !== path) this.onViolation("volumes are staged once", `${volume} at ${path}`);
    if (this.#files.ownerOf(path) === undefined) throw failed("FailedPrecondition", `${path} is not there`);
    const options = this.#judgeOptions(path, path, request);
    if (known === undefined && !isBlock(request)) void this.#mounts.mount(mountOf(volume, path, options));
    this.#staged.set(volume, path);
    return {};
  }

  #unstage(volume: string, path: string): object {
    const [target] = [...this.#published].find(([, one]) => one === volume) ?? [];
    if (target !== undefined) {
      this.onViolation("volumes are unstaged when nobody has them", `${volume} is published at ${target}`);
    }
    if (this.#staged.get(volume) === path) {
      void this.#mounts.unmount(path);
      this.#staged.delete(volume);
      this.#options.delete(path);
    }
    return {};
  }

  #publish({ stages }: DriverKind, { volume, target, staging, request }: Publishing): object {
    if (stages && this.#staged.get(volume) !== staging) {
      this.onViolation("volumes are published while they are staged", `${volume} at ${target}`);
      throw failed("FailedPrecondition", `${volume} is not staged`);
    }
    const options = this.#judgeOptions(target, staging, request);
    if (this.#published.has(target)) return {};
    const isDevice = isBlock(request);
    // Like many drivers, it creates missing parent directories.
    void this.#files.makeDirectory(isDevice ? target.slice(0, target.lastIndexOf("/")) : target, 0o750);
    void this.#files.write(isDevice ? target : `${target}/data`, "precious", 0o600);
    if (isDevice) this.#devices.add(target);
    void this.#mounts.mount(mountOf(volume, target, options));
    this.#published.set(target, volume);
    return {};
  }

  #unpublish(volume: string, target: string): object {
    if (this.#published.get(target) === volume) {
      void this.#mounts.unmount(target);
      void this.#files.removeTree(target);
      this.#published.delete(target);
      this.#devices.delete(target);
      this.#options.delete(target);
    }
    void this.#files.removeTree(target);
    return {};
  }
}

export function volumeOf(request: Request): string {
  return textOf(request, "volumeId");
}

function textOf(request: Request, name: string): string {
  const value = request[name];
  return typeof value === "string" ? value : "";
}

function isBlock(request: Request): boolean {
  return accessTypeOf(request)["case"] === "block";
}

function mountFlags(request: Request): string[] {
  const flags = fieldsAt(accessTypeOf(request), "value")["mountFlags"];
  return Array.isArray(flags) ? flags.map(String) : [];
}

function accessTypeOf(request: Request): Fields {
  return fieldsAt(fieldsAt(request, "volumeCapability"), "accessType");
}

function requiredBytes({ capacityRange: range }: Request): bigint {
  const bytes = typeof range === "object" && range !== null && "requiredBytes" in range ? range.requiredBytes : 0n;
  return typeof bytes === "bigint" ? bytes : 0n;
}

function mountOf(source: string, target: string, options: readonly string[]) {
  return { source, target, fileSystem: "simulated", options, device: source };
}

function failed(code: RpcError["code"], message: string): RpcError {
  return new RpcError(code, message, { isStatus: true });
}
