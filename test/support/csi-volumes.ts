import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { RpcError } from "../../src/ports/rpc.ts";

interface Stage {
  readonly volumeId: string;
  readonly stagingTargetPath: string;
  readonly volumeCapability?: Capability;
}

interface Publish extends Stage {
  readonly targetPath: string;
  readonly readonly: boolean;
}

interface Capability {
  readonly accessType?: { readonly case?: string };
}

interface Expand {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly capacityRange?: { readonly requiredBytes: bigint };
}

interface Staged {
  readonly path: string;
  /** Of a block volume. */
  readonly device: string | undefined;
}

const mebibyte = 1024 * 1024;

/** The volumes of a test driver, with its mounts. Calls are idempotent, as the specification requires. */
export class CsiVolumes {
  readonly #directory: string;
  readonly #violations: string[];
  readonly #staged = new Map<string, Staged>();
  /** Targets by volume. */
  readonly #published = new Map<string, Set<string>>();
  readonly #sizes = new Map<string, number>();
  /** What is wrong with every volume; empty: nothing. */
  abnormal = "";
  /** Whether volumes are staged at all. */
  stages = true;
  /** Whether a file system is mounted where it is staged; some drivers do all in the publish. */
  mountsStages = true;

  constructor(directory: string, violations: string[]) {
    this.#directory = directory;
    this.#violations = violations;
    mkdirSync(directory, { recursive: true });
  }

  /** Targets at which a volume is published. */
  published(volumeId: string): readonly string[] {
    return [...(this.#published.get(volumeId) ?? [])];
  }

  isStaged(volumeId: string): boolean {
    return this.#staged.has(volumeId);
  }

  /** Nothing is staged or published. */
  get isIdle(): boolean {
    return this.#staged.size === 0 && [...this.#published.values()].every((targets) => targets.size === 0);
  }

  /** What a block volume's device writes to. */
  image(volumeId: string): string {
    return join(this.#directory, `${volumeId}.img`);
  }

  /** Where a volume's content lies. */
  content(volumeId: string): string {
    const path = join(this.#directory, volumeId);
    mkdirSync(path, { recursive: true });
    return path;
  }

  stage({ volumeId, stagingTargetPath: path, volumeCapability }: Stage): object {
    if (!this.stages) throw new RpcError("Unimplemented", "volumes are not staged");
    const known = this.#staged.get(volumeId);
    if (known !== undefined && known.path !== path) this.#violations.push(`${volumeId} is staged at ${known.path}`);
    if (!existsSync(path)) throw new RpcError("FailedPrecondition", `${path} is not there`);
    const isBlock = volumeCapability?.accessType?.case === "block";
    const mounts = this.mountsStages && !isBlock && known === undefined;
    if (mounts && !isMounted(path)) mount(["--bind", this.content(volumeId), path]);
    const device = isBlock ? (known?.device ?? this.#attach(volumeId)) : undefined;
    this.#staged.set(volumeId, { path, device });
    return {};
  }

  unstage({ volumeId, stagingTargetPath: path }: Stage): object {
    const targets = this.#published.get(volumeId);
    if (targets !== undefined && targets.size > 0) {
      this.#violations.push(`${volumeId} is unstaged while it is published at ${[...targets].join(", ")}`);
    }
    const { device, path: known = path } = this.#staged.get(volumeId) ?? {};
    if (known !== path) this.#violations.push(`${volumeId} is unstaged at ${path}, and was staged at ${known}`);
    if (device !== undefined) execFileSync("losetup", ["-d", device]);
    if (isMounted(path)) umount(path);
    this.#staged.delete(volumeId);
    return {};
  }

  publish({ volumeId, stagingTargetPath, targetPath, readonly: isReadOnly, volumeCapability }: Publish): object {
    const staged = this.#staged.get(volumeId);
    if (stagingTargetPath !== "" && staged === undefined) {
      this.#violations.push(`${volumeId} is published while it is not staged`);
      throw new RpcError("FailedPrecondition", `${volumeId} is not staged`);
    }
    if (!isMounted(targetPath)) {
      if (volumeCapability?.accessType?.case === "block") {
        mkdirSync(dirname(targetPath), { recursive: true });
        closeSync(openSync(targetPath, "w"));
        mount(["--bind", staged?.device ?? this.#attach(volumeId), targetPath]);
      } else {
        mkdirSync(targetPath, { recursive: true, mode: 0o750 });
        mount(["--bind", this.content(volumeId), targetPath]);
        if (isReadOnly) mount(["-o", "remount,bind,ro", targetPath]);
      }
    }
    const targets = this.#published.get(volumeId) ?? new Set();
    this.#published.set(volumeId, targets.add(targetPath));
    return {};
  }

  unpublish({ volumeId, targetPath }: Publish): object {
    if (isMounted(targetPath)) umount(targetPath);
    if (existsSync(targetPath)) {
      if (statSync(targetPath).isDirectory()) rmdirSync(targetPath);
      else rmSync(targetPath);
    }
    this.#published.get(volumeId)?.delete(targetPath);
    return {};
  }

  stats({ volumeId, volumePath }: { readonly volumeId: string; readonly volumePath: string }): object {
    if (!existsSync(volumePath)) throw new RpcError("NotFound", `${volumePath} is not there`);
    const { bsize, blocks, bavail, files, ffree } = statfsSync(this.content(volumeId));
    const [total, available] = [BigInt(bsize * blocks), BigInt(bsize * bavail)];
    return {
      usage: [
        { unit: 1, total, available, used: total - available },
        { unit: 2, total: BigInt(files), available: BigInt(ffree), used: BigInt(files - ffree) },
      ],
      volumeCondition: { abnormal: this.abnormal !== "", message: this.abnormal },
    };
  }

  expand({ volumeId, volumePath, capacityRange }: Expand): object {
    const bytes = capacityRange?.requiredBytes ?? 0n;
    const staged = this.#staged.get(volumeId);
    if (staged?.path !== volumePath && !this.published(volumeId).includes(volumePath)) {
      this.#violations.push(`${volumeId} is expanded at ${volumePath}, where it is not`);
    }
    if (staged?.device !== undefined) {
      truncateSync(this.image(volumeId), Number(bytes));
      execFileSync("losetup", ["--set-capacity", staged.device]);
    }
    this.#sizes.set(volumeId, Number(bytes));
    return { capacityBytes: bytes };
  }

  size(volumeId: string): number | undefined {
    return this.#sizes.get(volumeId);
  }

  /** Imitates a reboot: mounts disappear, files stay. */
  clear(): void {
    for (const targets of this.#published.values()) for (const target of targets) if (isMounted(target)) umount(target);
    this.#published.clear();
    for (const { path, device } of this.#staged.values()) {
      if (isMounted(path)) umount(path);
      if (device !== undefined) execFileSync("losetup", ["-d", device]);
    }
    this.#staged.clear();
  }

  #attach(volumeId: string): string {
    const file = this.image(volumeId);
    if (!existsSync(file)) {
      writeFileSync(file, "");
      const descriptor = openSync(file, "r+");
      ftruncateSync(descriptor, 4 * mebibyte);
      closeSync(descriptor);
    }
    return execFileSync("losetup", ["-f", "--show", file]).toString().trim();
  }
}

function isMounted(path: string): boolean {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[4] === path);
}

function mount(arguments_: string[]): void {
  execFileSync("mount", arguments_, { stdio: "pipe" });
}

function umount(path: string): void {
  execFileSync("umount", [path], { stdio: "pipe" });
}
