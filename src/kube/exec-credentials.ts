import { createSecureContext } from "node:tls";
import * as z from "zod";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { Processes } from "../ports/processes.ts";
import type { ExecPlugin } from "./exec-plugin.ts";
import { tokenProblem } from "./token.ts";

/** What a plugin hands out. */
export interface ExecCredential {
  readonly token?: string;
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** Wall clock, milliseconds; undefined: good until the server refuses it. */
  readonly expiresAtMs?: number;
}

const Answer = z.looseObject({
  apiVersion: z.string(),
  kind: z.literal("ExecCredential"),
  status: z.looseObject({
    token: z.string().nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish(),
  }),
});

const pluginTimeoutMs = 60_000;
/**
 * The maximum wait of a request: it then fails with the plugin's name, before its own deadline, and the plugin
 * continues.
 */
const patienceMs = 5000;

/** A plugin's credentials, requested when missing, expired or rejected. */
export class ExecCredentials {
  readonly #plugin: ExecPlugin;
  readonly #clock: Clock;
  readonly #processes: Processes;
  readonly #authority: () => Promise<string | undefined>;
  #current: ExecCredential | undefined;
  #asking: Promise<ExecCredential> | undefined;
  readonly #closed = new AbortController();

  /**
   * @param deps authority: PEM of the authorities for the server's certificate, for plugins that call the server
   *   themselves
   */
  constructor(
    plugin: ExecPlugin,
    deps: {
      readonly clock: Clock;
      readonly processes: Processes;
      readonly authority: () => Promise<string | undefined>;
    },
  ) {
    this.#plugin = plugin;
    this.#clock = deps.clock;
    this.#processes = deps.processes;
    this.#authority = deps.authority;
  }

  /** @throws KubeConnectionError when the plugin gives none; shows nothing that it printed to standard output */
  async get(): Promise<ExecCredential> {
    const { expiresAtMs } = this.#current ?? {};
    if (expiresAtMs !== undefined && expiresAtMs <= this.#clock.now()) this.#current = undefined;
    if (this.#current !== undefined) return this.#current;
    // Concurrent requests wait for the same result.
    this.#asking ??= this.#renew();
    return await this.#patiently(this.#asking);
  }

  /** A plugin that runs is killed. */
  close(): void {
    this.#closed.abort(this.#failed("is no longer needed"));
  }

  async #renew(): Promise<ExecCredential> {
    try {
      this.#current = await this.#ask();
      return this.#current;
    } finally {
      this.#asking = undefined;
    }
  }

  async #patiently(asking: Promise<ExecCredential>): Promise<ExecCredential> {
    const wait = `the credential plugin ${this.#plugin.command}`;
    try {
      return await withDeadline(this.#clock, wait, patienceMs, undefined, () => asking);
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      const limits = `for ${patienceMs / 1000} s; it is killed after ${pluginTimeoutMs / 1000} s`;
      throw this.#failed(`has not returned ${limits}`, error);
    }
  }

  #failed(problem: string, cause?: unknown): KubeConnectionError {
    const { command, installHint } = this.#plugin;
    const hint = installHint === undefined ? "" : `: ${installHint}`;
    return new KubeConnectionError(`the credential plugin ${command} ${problem}${hint}`, { cause });
  }

  /** The server rejects the credential. Requests that used it after its replacement need no third one. */
  refused(credential: ExecCredential): void {
    if (this.#current === credential) this.#current = undefined;
  }

  async #ask(): Promise<ExecCredential> {
    const { command, args, env, apiVersion, cluster } = this.#plugin;
    const spec = { interactive: false, ...(cluster && { cluster: await this.#withAuthority(cluster) }) };
    const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec });
    const { signal } = this.#closed;
    const environment = { ...env, KUBERNETES_EXEC_INFO: info };
    const result = await this.#processes
      .run(command, args, { timeoutMs: pluginTimeoutMs, environment, signal })
      .catch((error: unknown) => {
        signal.throwIfAborted();
        throw this.#failed(`cannot be run: ${errorMessage(error)}`, error);
      });
    const said = result.stderr.trim().slice(-500);
    if (result.exitCode !== 0) {
      const end = result.signal ?? `exit code ${result.exitCode}`;
      if (said !== "") throw this.#failed(`ended with ${end}: ${said}`);
      const how = `it was run as: ${shownCommand(command, args)}`;
      throw this.#failed(`ended with ${end} and printed no error; ${how}`);
    }
    const credential = decodeCredential(result.stdout, apiVersion);
    if (typeof credential === "string") throw this.#failed(`${credential}${said && `; its output: ${said}`}`);
    try {
      createSecureContext(credential.certificate);
    } catch (error) {
      throw this.#failed("returned a certificate and a key that are not PEM, or do not match", error);
    }
    return credential;
  }

  async #withAuthority(cluster: NonNullable<ExecPlugin["cluster"]>): Promise<Readonly<Record<string, unknown>>> {
    const pem = await this.#authority();
    if (pem === undefined) return cluster;
    return { ...cluster, "certificate-authority-data": Buffer.from(pem).toString("base64") };
  }
}

/** A command to try by hand, without potential secrets in its arguments. Pure. */
function shownCommand(command: string, args: readonly string[]): string {
  const shown = args.map((arg, index) => {
    const [name = ""] = arg.split("=", 1);
    if (name !== arg && isSecret(name)) return `${name}=…`;
    const before = args[index - 1] ?? "";
    return before.startsWith("-") && !before.includes("=") && !arg.startsWith("-") && isSecret(before) ? "…" : arg;
  });
  return [command, ...shown].join(" ");
}

function isSecret(name: string): boolean {
  return /token|secret|passw|key|credential/iu.test(name);
}

/** What a plugin printed, or what is wrong with it. Pure. */
export function decodeCredential(text: string, apiVersion: string): ExecCredential | string {
  if (text.trim() === "") return "printed nothing instead of an ExecCredential";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "printed something that is not JSON";
  }
  const result = Answer.safeParse(value);
  if (!result.success) return "printed no ExecCredential with a status";
  if (result.data.apiVersion !== apiVersion) return `returned ${result.data.apiVersion} instead of ${apiVersion}`;
  const { clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = result.data.status;
  const token = result.data.status.token?.trim();
  if (!token && !(cert && key)) return "returned neither a token nor a certificate with its key";
  const problem = token && tokenProblem(token);
  if (problem) return `returned a token that ${problem}`;
  const expiresAtMs = expirationTimestamp ? Date.parse(expirationTimestamp) : undefined;
  if (expiresAtMs !== undefined && Number.isNaN(expiresAtMs)) {
    return "returned an expirationTimestamp that is not a time";
  }
  return {
    ...(token && { token }),
    ...(cert && key && { certificate: { cert, key } }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}
