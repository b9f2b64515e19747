import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { PullAsker } from "./credential-provider.ts";
import type { CredentialProviders } from "./credential-providers.ts";
import { decodeDockerConfig, type RegistryEntry } from "./docker-config.ts";
import { parseImageReference } from "./image-reference.ts";
import { credentialsFor, type Keyring, makeKeyring, type SecretSource, type TrackedCredential } from "./keyring.ts";

/** A pull secret of a pod, decoded. */
export interface PullSecret {
  readonly source: SecretSource;
  readonly entries: readonly RegistryEntry[];
}

/** As upstream: interval at which the node's own files are read again. */
const rereadMs = 5 * 60_000;
const maxBytes = 10 * 1024 * 1024;

/** The credentials for pulls: the pod's, then those of the node's own files, then those of credential providers. */
export class PullCredentials {
  readonly #deps: { readonly clock: Clock; readonly files: Pick<Files, "read">; readonly log: Logger };
  readonly #paths: readonly string[];
  readonly #providers: Pick<CredentialProviders, "for"> | undefined;
  #node: { readonly keyring: Keyring; readonly readAtMs: number } | undefined;

  /** @param paths files named `config.json` or `.dockercfg`; the first valid one is used */
  constructor(
    deps: { readonly clock: Clock; readonly files: Pick<Files, "read">; readonly log: Logger },
    paths: readonly string[],
    providers?: Pick<CredentialProviders, "for">,
  ) {
    this.#providers = providers;
    this.#deps = deps;
    this.#paths = paths;
  }

  /**
   * The credentials for an image, in the order in which they are tried. Equal ones are all there: which Secrets a pod has
   * decides whether it may use an image.
   */
  async for(image: string, secrets: readonly PullSecret[], asker?: PullAsker): Promise<readonly TrackedCredential[]> {
    const { domain, path } = parseImageReference(image);
    const repository = `${domain}/${path}`;
    const own = credentialsFor(makeKeyring(secrets), repository);
    const nodes = credentialsFor(await this.#nodeKeyring(), repository);
    const provided = (asker && (await this.#providers?.for(repository, asker))) ?? [];
    const theirs = credentialsFor(makeKeyring(provided.map((list) => ({ ...list, source: undefined }))), repository);
    return [...own, ...nodes, ...theirs];
  }

  async #nodeKeyring(): Promise<Keyring> {
    const nowMs = this.#deps.clock.monotonic();
    if (this.#node === undefined || nowMs - this.#node.readAtMs >= rereadMs) {
      const entries = await this.#readNode();
      this.#node = { keyring: makeKeyring([{ entries, source: undefined }]), readAtMs: nowMs };
    }
    return this.#node.keyring;
  }

  async #readNode(): Promise<readonly RegistryEntry[]> {
    for (const path of this.#paths) {
      try {
        const form = path.endsWith("/.dockercfg") ? ".dockercfg" : "config.json";
        return decodeDockerConfig(await this.#deps.files.read(path, maxBytes), form);
      } catch (error) {
        if (error instanceof FileError && ["ENOENT", "ENOTDIR"].includes(error.code)) continue;
        this.#deps.log.warn("cannot use a credentials file", { path, error: errorMessage(error) });
      }
    }
    return [];
  }
}
