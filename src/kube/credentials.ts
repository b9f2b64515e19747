import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { Processes } from "../ports/processes.ts";
import { ExecCredentials } from "./exec-credentials.ts";
import type { KubeAccess, TextSource } from "./kubeconfig.ts";

/** What a connection and its requests prove who they are with. All secrets. */
export interface Identity {
  /** Bearer token. */
  readonly token: string | undefined;
  /** PEM. A connection is good for one certificate: with another one a new connection is made. */
  readonly certificate: { readonly cert: string; readonly key: string } | undefined;
}

/**
 * A client certificate that is renewed while podwright runs. What the kubeconfig says of who asks then counts for
 * nothing: a token that is sent along would go wherever the certificate is known.
 * It may wait for one, no longer than the signal lets it. @throws KubeConnectionError while there is none
 */
export type CertificateSource = (signal: AbortSignal) => Promise<NonNullable<Identity["certificate"]>>;

/** As in client-go: rotated tokens and certificates are noticed within a minute. */
const rereadMs = 60_000;
const maxFileBytes = 1024 * 1024;

/** Who podwright is to the API server, as its kubeconfig says: files are read again, plugins asked again. */
export class Credentials {
  readonly #access: KubeAccess;
  readonly #clock: Clock;
  readonly #files: Files;
  readonly #exec: ExecCredentials | undefined;
  readonly #certificate: CertificateSource | undefined;
  readonly #read = new Map<string, { readonly text: string; readonly atMs: number }>();

  constructor(
    access: KubeAccess,
    deps: {
      readonly clock: Clock;
      readonly files: Files;
      readonly processes: Processes;
      readonly clientCertificate?: CertificateSource;
    },
  ) {
    this.#access = access;
    this.#clock = deps.clock;
    this.#files = deps.files;
    this.#certificate = deps.clientCertificate;
    this.#exec = access.user.exec && new ExecCredentials(access.user.exec, deps);
  }

  /** @throws KubeConnectionError when they can't be had */
  async identity(signal: AbortSignal): Promise<Identity> {
    if (this.#certificate !== undefined) return { token: undefined, certificate: await this.#certificate(signal) };
    const { certificate, token } = this.#access.user;
    const given = await this.#exec?.get();
    const own = certificate && { cert: await this.#text(certificate.cert), key: await this.#text(certificate.key) };
    return {
      token: given?.token ?? (token && (await this.#text(token)).trim()),
      certificate: given?.certificate ?? own,
    };
  }

  /** PEM of who may sign the server's certificate; undefined: whom the system trusts. */
  async authority(): Promise<string | undefined> {
    return this.#access.ca && (await this.#text(this.#access.ca));
  }

  /** The server answered 401: what may have changed is looked at again. */
  refused(): void {
    this.#exec?.refused();
    this.#read.clear();
  }

  async #text(source: TextSource): Promise<string> {
    if (source.kind === "inline") return source.text;
    const nowMs = this.#clock.monotonic();
    const known = this.#read.get(source.path);
    if (known !== undefined && nowMs - known.atMs < rereadMs) return known.text;
    try {
      const text = new TextDecoder().decode(await this.#files.read(source.path, maxFileBytes));
      this.#read.set(source.path, { text, atMs: nowMs });
      return text;
    } catch (error) {
      // A file that is being replaced is back soon; what it held is most likely still good.
      if (known !== undefined) return known.text;
      throw new KubeConnectionError(`credentials of the kubeconfig: ${errorMessage(error)}`, { cause: error });
    }
  }
}
