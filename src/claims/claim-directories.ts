import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files, removeEmpty } from "../ports/files.ts";
import type { KeptClaim } from "./kept-claim.ts";

/** Where the data of claims is that no PersistentVolume was given for: `<root>/<namespace>/<claim>`. */
export class ClaimDirectories {
  readonly #files: Files;
  readonly #root: string;

  constructor(files: Files, root: string) {
    this.#files = files;
    this.#root = root;
  }

  path({ metadata }: KeptClaim): string {
    return `${this.#root}/${metadata.namespace}/${metadata.name}`;
  }

  /** Whoever a pod runs as may write there; on the machine only root gets there. */
  async ensure(claim: KeptClaim): Promise<void> {
    const path = this.path(claim);
    if ((await this.#files.stat(path)) !== undefined) return;
    await this.#files.makeDirectory(this.#root, 0o700);
    await this.#files.makeDirectory(`${this.#root}/${claim.metadata.namespace}`, 0o700);
    await this.#files.makeDirectory(path, 0o777);
  }

  /** @throws PodwrightError when something is mounted there; nothing is removed then */
  async remove(claim: KeptClaim): Promise<void> {
    const path = this.path(claim);
    try {
      await this.#files.removeTree(path);
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "EBUSY") throw error;
      throw new PodwrightError(ExitCode.failed, `something is mounted in ${path}; nothing was removed`, {
        cause: error,
        remedy: "unmount it first",
      });
    }
    await removeEmpty(this.#files, `${this.#root}/${claim.metadata.namespace}`);
  }
}
