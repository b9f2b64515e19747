import type { CertificateInfo, CertificateTools, KeyPair } from "../ports/certificates.ts";
import { asError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import { stateOf } from "./validity.ts";

/** A key pair that is on disk, with what its certificates say; the first is its own. */
export interface StoredPair extends KeyPair {
  readonly chain: readonly [CertificateInfo, ...CertificateInfo[]];
  /** Where it was read from, for people. */
  readonly path: string;
}

export interface CertificateStoreConfig {
  /** `--cert-dir`. */
  readonly directory: string;
  /** `kubelet-client`, `kubelet-server`. */
  readonly prefix: string;
  /** Files that count while the store itself has nothing. */
  readonly files?: { readonly certificate: string; readonly key: string };
}

interface StoreDependencies {
  readonly files: Files;
  readonly tools: CertificateTools;
}

const maxFileBytes = 1024 * 1024;

/**
 * Certificates with their keys in files of the Go kubelet's layout: `PREFIX-TIME.pem` holds both, and the link
 * `PREFIX-current.pem` names the one that counts. A key whose certificate is still waited for lies beside them.
 */
export class CertificateStore {
  readonly #deps: StoreDependencies;
  readonly #config: CertificateStoreConfig;

  constructor(deps: StoreDependencies, config: CertificateStoreConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** The link to the pair that counts. */
  get currentPath(): string {
    return this.#path("current");
  }

  /**
   * The pair in use: the first that has not expired, else the first; undefined if there is none. An outdated or damaged
   * one hides none that another place has.
   * @throws Error that names the file if its content is invalid, and no place has a valid pair
   */
  async current(nowMs: number): Promise<StoredPair | undefined> {
    await this.#recover();
    const { directory, prefix, files } = this.#config;
    const own = { certificate: `${directory}/${prefix}.crt`, key: `${directory}/${prefix}.key` };
    const places = [{ certificate: this.currentPath, key: this.currentPath }, ...(files ? [files] : []), own];
    let expired: StoredPair | undefined;
    let problem: Error | undefined;
    for (const place of places) {
      try {
        const pair = await this.#read(place.certificate, place.key);
        if (pair !== undefined && stateOf(pair.chain, nowMs) !== "expired") return pair;
        expired ??= pair;
      } catch (error) {
        problem ??= asError(error);
      }
    }
    if (problem !== undefined) throw problem;
    return expired;
  }

  /** A pair with what its certificates say, without storing it. @throws Error that names the place when it is no pair */
  inspect(pair: KeyPair, path: string): StoredPair {
    const { tools } = this.#deps;
    const problem = (text: string): Error => new Error(`${path}: ${text}`);
    if (pair.certificate === "") throw problem("holds no certificate");
    if (pair.key === "") throw problem("holds no private key");
    const [own, ...more] = tools.certificates(pair.certificate);
    if (own === undefined) throw problem("holds no certificate");
    if (!tools.belong(pair)) throw problem("the private key is not that of the certificate");
    return { ...pair, chain: [own, ...more], path };
  }

  /** Stores a pair, and makes it the one that counts. @throws FileError, or Error when it is no pair */
  async update(pair: KeyPair, nowMs: number): Promise<StoredPair> {
    const { files, tools } = this.#deps;
    const { certificate, key } = { ...tools.split(pair.certificate), key: tools.split(pair.key).key };
    const path = this.#path(stamp(nowMs));
    const stored = this.inspect({ certificate: certificate ?? "", key: key ?? "" }, path);
    await files.makeDirectory(this.#config.directory, 0o755);
    await files.writeAtomic(path, stored.certificate + stored.key, 0o600);
    await this.#link(path);
    await files.remove(this.#pendingPath);
    return stored;
  }

  /** The key of the pending request, created if there is none. Kept over restarts until {@link update}. */
  async pendingKey(): Promise<string> {
    const { files, tools } = this.#deps;
    try {
      const { key } = tools.split(await this.#text(this.#pendingPath));
      if (key !== undefined) {
        tools.publicKey(key);
        return key;
      }
    } catch {
      // Not there, or of no use: another one takes its place.
    }
    const key = tools.newKey();
    await files.makeDirectory(this.#config.directory, 0o755);
    await files.writeAtomic(this.#pendingPath, key, 0o600);
    return key;
  }

  /** The next {@link pendingKey} is a new one. */
  async dropPendingKey(): Promise<void> {
    await this.#deps.files.remove(this.#pendingPath);
  }

  get #pendingPath(): string {
    return `${this.#config.directory}/${this.#config.prefix}.key.tmp`;
  }

  #path(qualifier: string): string {
    return `${this.#config.directory}/${this.#config.prefix}-${qualifier}.pem`;
  }

  /** An update that was killed between its last two steps is brought to its end. */
  async #recover(): Promise<void> {
    const { files } = this.#deps;
    if ((await files.stat(this.currentPath)) !== undefined) return;
    const updated = await files.stat(this.#path("updated"));
    if (updated?.type === "symlink") await files.rename(this.#path("updated"), this.currentPath);
  }

  async #link(path: string): Promise<void> {
    const { files } = this.#deps;
    for (const link of [this.currentPath, this.#path("updated")]) {
      const info = await files.stat(link);
      if (info !== undefined && info.type !== "symlink") {
        throw new FileError("EEXIST", link, `expected ${JSON.stringify(link)} to be a symlink but it is a file`);
      }
    }
    await files.remove(this.#path("updated"));
    await files.symlink(path, this.#path("updated"));
    await files.rename(this.#path("updated"), this.currentPath);
  }

  async #read(certificatePath: string, keyPath: string): Promise<StoredPair | undefined> {
    const { tools } = this.#deps;
    let texts: readonly [string, string];
    try {
      texts = [await this.#text(certificatePath), await this.#text(keyPath)];
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return undefined;
      throw error;
    }
    const { certificate = "" } = tools.split(texts[0]);
    const { key = "" } = tools.split(texts[1]);
    return this.inspect({ certificate, key }, certificatePath);
  }

  async #text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.#deps.files.read(path, maxFileBytes));
  }
}

/** `2026-11-20-14-02-00`, UTC. */
function stamp(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[T:]/g, "-");
}
