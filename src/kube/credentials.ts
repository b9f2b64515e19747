import { createSecureContext } from "node:tls";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { Processes } from "../ports/processes.ts";
import { connectionError } from "./connection-error.ts";
import { type ExecCredential, ExecCredentials } from "./exec-credentials.ts";
import type { KubeAccess, KubeUser, TextSource } from "./kubeconfig.ts";
import { Reread } from "./reread.ts";
import { tokenProblem } from "./token.ts";

/** The credentials of a connection and its requests. All secrets. */
export interface Identity {
  /** Bearer token. */
  readonly token: string | undefined;
  /** PEM. A connection is good for one certificate: with another one a new connection is made. */
  readonly certificate: { readonly cert: string; readonly key: string } | undefined;
  /** The plugin's credential that it is: which one the server refuses decides whether the plugin is run again. */
  readonly given?: ExecCredential;
}

/**
 * A client certificate that is renewed while podwright runs. It replaces the kubeconfig's credentials: a token must not
 * be sent along. Waits for one within the signal's limit. @throws KubeConnectionError while there is none
 */
export type CertificateSource = (signal: AbortSignal) => Promise<NonNullable<Identity["certificate"]>>;

const maxFileBytes = 1024 * 1024;

/** podwright's credentials for the API server, by its kubeconfig: files are reread, plugins rerun. */
export class Credentials {
  readonly #url: URL;
  readonly #files: Files;
  readonly #exec: ExecCredentials | undefined;
  readonly #renewed: CertificateSource | undefined;
  readonly #token: Reread<string> | undefined;
  readonly #certificate: Reread<NonNullable<Identity["certificate"]>> | undefined;
  readonly #authority: Reread<string> | undefined;

  constructor(
    { server, ca, user }: KubeAccess,
    deps: {
      readonly clock: Clock;
      readonly files: Files;
      readonly processes: Processes;
      readonly clientCertificate?: CertificateSource;
    },
  ) {
    const { certificate, token, exec } = user;
    this.#url = new URL(server);
    this.#files = deps.files;
    this.#renewed = deps.clientCertificate;
    this.#exec = exec && new ExecCredentials(exec, { ...deps, authority: () => this.authority() });
    this.#token = token && new Reread(deps.clock, () => this.#readToken(token));
    this.#certificate = certificate && new Reread(deps.clock, () => this.#readPair(certificate));
    this.#authority = ca && new Reread(deps.clock, () => this.#readAuthority(ca));
  }

  /** @throws KubeConnectionError when they are not available */
  async identity(signal: AbortSignal): Promise<Identity> {
    if (this.#renewed !== undefined) return { token: undefined, certificate: await this.#renewed(signal) };
    const given = await this.#exec?.get();
    if (given !== undefined) return { token: given.token, certificate: given.certificate, given };
    return { token: await this.#token?.get(), certificate: await this.#certificate?.get() };
  }

  /** PEM of the authorities for the server's certificate; undefined: the system's. */
  async authority(): Promise<string | undefined> {
    return await this.#authority?.get();
  }

  /** The server answered 401: credentials are reread. */
  refused({ given }: Identity): void {
    if (given !== undefined) this.#exec?.refused(given);
    for (const each of [this.#token, this.#certificate, this.#authority]) each?.expire();
  }

  /** A connection failed, or was forbidden: perhaps because files were inconsistent for a moment. */
  doubted(): void {
    for (const each of [this.#token, this.#certificate, this.#authority]) each?.doubt();
  }

  /** No more requests. */
  close(): void {
    this.#exec?.close();
  }

  async #readToken(source: TextSource): Promise<string> {
    const token = (await this.#text(source)).trim();
    const problem = tokenProblem(token);
    if (problem !== undefined) throw failed(`the token ${shown(source)}${problem}`);
    return token;
  }

  async #readPair({ cert, key }: NonNullable<KubeUser["certificate"]>): Promise<NonNullable<Identity["certificate"]>> {
    const pair = { cert: await this.#text(cert), key: await this.#text(key) };
    try {
      // The same as connecting does: they have to be PEM, and belong together.
      createSecureContext(pair);
    } catch (error) {
      throw connectionError({ url: this.#url, ca: undefined }, error);
    }
    return pair;
  }

  async #readAuthority(source: TextSource): Promise<string> {
    const text = await this.#text(source);
    if (source.kind === "file" && !isWholePem(text)) throw failed(`${source.path} holds no complete PEM certificate`);
    return text;
  }

  async #text(source: TextSource): Promise<string> {
    if (source.kind === "inline") return source.text;
    try {
      return new TextDecoder().decode(await this.#files.read(source.path, maxFileBytes));
    } catch (error) {
      throw failed(errorMessage(error), error);
    }
  }
}

function failed(problem: string, cause?: unknown): KubeConnectionError {
  return new KubeConnectionError(`credentials of the kubeconfig: ${problem}`, { cause });
}

function shown(source: TextSource): string {
  return source.kind === "file" ? `in ${source.path} ` : "";
}

/** Whether there are certificates, and the last one is not cut off. Pure. */
function isWholePem(text: string): boolean {
  const count = (mark: string): number => text.split(`-----${mark} CERTIFICATE-----`).length - 1;
  return count("BEGIN") > 0 && count("BEGIN") === count("END");
}
