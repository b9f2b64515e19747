import { FileError, type Files } from "../ports/files.ts";
import { type PolicyContexts, policyContexts, policyName } from "./selinux-label.ts";

const policies = "/etc/selinux";
/** Takes precedence over the policy's own, for container engines. */
const contextsOfEngines = "/usr/share/containers/selinux/contexts";
/** These files have a few lines. */
const maxBytes = 64 * 1024;

/** The SELinux policy of the node, as far as it concerns containers. */
export class SELinuxPolicy {
  readonly #files: Pick<Files, "read">;
  #contexts: Promise<PolicyContexts> | undefined;

  constructor(files: Pick<Files, "read">) {
    this.#files = files;
  }

  /** Read once, as by the runtime. @throws FileError if its files cannot be read, and reads them again next time */
  async contexts(): Promise<PolicyContexts> {
    this.#contexts ??= this.#read();
    try {
      return await this.#contexts;
    } catch (error) {
      this.#contexts = undefined;
      throw error;
    }
  }

  async #read(): Promise<PolicyContexts> {
    const ofEngines = await this.#text(contextsOfEngines);
    if (ofEngines !== undefined) return policyContexts(ofEngines);
    const name = policyName((await this.#text(`${policies}/config`)) ?? "");
    return policyContexts((await this.#text(`${policies}/${name}/contexts/lxc_contexts`)) ?? "");
  }

  /** Undefined: there is no such file. */
  async #text(path: string): Promise<string | undefined> {
    try {
      return new TextDecoder().decode(await this.#files.read(path, maxBytes));
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return undefined;
      throw error;
    }
  }
}
