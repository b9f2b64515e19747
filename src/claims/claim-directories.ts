import { dirname } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files, removeEmpty } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import { stateOption } from "../private-runtime/layout.ts";
import { localVolumeDirectory } from "../volumes/local-volume-plugin.ts";
import { hasOwnDirectory, type KeptClaim, ownVolumeName } from "./kept-claim.ts";

/** The directories of claims without a PersistentVolume: `<root>/<namespace>/<claim>`. */
export class ClaimDirectories {
  readonly #files: Files;
  readonly #log: Logger;
  readonly #mounts: Pick<Mounts, "below">;
  readonly #root: string;
  readonly #pods: string;

  /**
   * @param root `<state>/volumes`
   * @param pods the directory of the node's pods, where claims are mounted
   */
  constructor(
    { files, log, mounts }: { readonly files: Files; readonly log: Logger; readonly mounts: Pick<Mounts, "below"> },
    root: string,
    pods: string,
  ) {
    this.#files = files;
    this.#log = log;
    this.#mounts = mounts;
    this.#root = root;
    this.#pods = pods;
  }

  /** A command for a user, e.g. `podwright volumes --state-dir /srv/pods`. */
  command(...[verb, ...operands]: readonly [string, ...string[]]): string {
    return ["podwright", verb, ...stateOption(dirname(this.#root)), ...operands].join(" ");
  }

  path({ metadata }: KeptClaim): string {
    return `${this.#root}/${metadata.namespace}/${metadata.name}`;
  }

  /**
   * Makes the directory of a claim that is about to be bound to it, not later: if it is gone then, so is its data, or the
   * disk that it is on is not mounted. Any user in a pod may write there; on the machine only root can reach it. One that
   * is there already stays as it is, and its data becomes the claim's: it may have been restored, or belong to another.
   * @returns how messages call it
   */
  async ensure(claim: KeptClaim): Promise<string> {
    const path = this.path(claim);
    const there = await this.#files.stat(path);
    if (there !== undefined) {
      // An interrupted binding leaves an empty one.
      if (there.type === "directory" && (await this.#isEmpty(path))) return `directory ${path}`;
      const { namespace, name } = claim.metadata;
      this.#log.warn("a new claim gets what is in its directory already", { namespace, claim: name, path });
      return `directory ${path}, which was there already, with what is in it`;
    }
    await this.#files.makeDirectory(this.#root, 0o700);
    await this.#files.makeDirectory(`${this.#root}/${claim.metadata.namespace}`, 0o700);
    await this.#files.makeDirectory(path, 0o777);
    return `directory ${path}`;
  }

  /** False also if it cannot be listed: that delays no binding. */
  async #isEmpty(path: string): Promise<boolean> {
    return await this.#files.list(path).then(
      ({ length }) => length === 0,
      () => false,
    );
  }

  /**
   * Of a claim that is not bound to its directory, only an empty one, which an interrupted binding may have made: files
   * in it are not the claim's.
   * @throws PodwrightError if it is mounted for a pod, or has a mount in it; nothing is removed then
   */
  async remove(claim: KeptClaim): Promise<void> {
    const path = this.path(claim);
    if (hasOwnDirectory(claim)) await this.#removeTree(claim, path);
    else if (!(await removeEmpty(this.#files, path))) return;
    await removeEmpty(this.#files, `${this.#root}/${claim.metadata.namespace}`);
  }

  async #removeTree(claim: KeptClaim, path: string): Promise<void> {
    await this.#refuseMounted(claim);
    try {
      await this.#files.removeTree(path);
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "EBUSY") throw error;
      throw new PodwrightError(ExitCode.failed, `something is mounted in ${path}; nothing was removed`, {
        cause: error,
        remedy: "unmount it first",
      });
    }
  }

  /** A pod that neither a manifest nor the runtime knows may still use it. */
  async #refuseMounted(claim: KeptClaim): Promise<void> {
    const { namespace, name } = claim.metadata;
    const place = `/volumes/${localVolumeDirectory}/${claim.spec.volumeName ?? ownVolumeName(claim)}`;
    const mounted = (await this.#mounts.below(this.#pods)).find(({ target }) => target.endsWith(place));
    if (mounted === undefined) return;
    throw new PodwrightError(ExitCode.failed, `claim ${namespace}/${name} is mounted at ${mounted.target}`, {
      remedy: `stop the pod of that directory first: '${this.command("ps")}' lists it while an engine runs`,
    });
  }
}
