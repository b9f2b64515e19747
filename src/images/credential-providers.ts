import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import { decodePluginAnswer, type PluginAnswer, pluginRequest } from "./credential-plugin.ts";
import type { AccountSource, CredentialProvider, PullAsker } from "./credential-provider.ts";
import type { RegistryEntry } from "./docker-config.ts";
import { matchesRepository } from "./registry-pattern.ts";
import type { SharedWork } from "./shared-work.ts";

export interface CredentialProviderDependencies {
  readonly clock: Clock;
  readonly processes: Pick<Processes, "run">;
  readonly hashing: Hashing;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Joins concurrent equal requests to a plugin. */
  readonly shared: SharedWork<PluginAnswer>;
}

/** Credentials from a plugin, and whose they are: an account's, or everybody's on the node. */
export interface ProvidedCredentials {
  readonly entries: readonly RegistryEntry[];
  readonly account: AccountSource | undefined;
}

interface Kept {
  readonly entries: readonly RegistryEntry[];
  readonly untilMs: number;
}

/** The identity of a plugin request. */
interface Identity {
  readonly source: AccountSource;
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** As upstream. */
const pluginLimitMs = 60_000;
const purgeMs = 15 * 60_000;
const longestShown = 300;

/**
 * The plugins of `--image-credential-provider-config`: programs that return registry credentials when an image is
 * pulled. A failed plugin is reported, and the pull continues without it.
 */
export class CredentialProviders {
  readonly #deps: CredentialProviderDependencies;
  readonly #providers: readonly CredentialProvider[];
  readonly #directory: string;
  readonly #kept = new Map<string, Kept>();
  #purgedAtMs: number;

  /** @param directory of the plugins */
  constructor(deps: CredentialProviderDependencies, providers: readonly CredentialProvider[], directory: string) {
    this.#deps = deps;
    this.#providers = providers;
    this.#directory = directory;
    this.#purgedAtMs = deps.clock.monotonic();
  }

  /**
   * The plugins' credentials for a repository, in plugin order. Rejects only with the signal's reason.
   * @param repository with its registry: `docker.io/library/busybox`
   */
  async for(repository: string, asker: PullAsker): Promise<readonly ProvidedCredentials[]> {
    const responsible = this.#providers.filter(({ matchImages }) =>
      matchImages.some((pattern) => matchesRepository(pattern, repository)),
    );
    return (await Promise.all(responsible.map((provider) => this.#ask(provider, repository, asker)))).flat();
  }

  async #ask(provider: CredentialProvider, repository: string, asker: PullAsker): Promise<ProvidedCredentials[]> {
    const { journal, log } = this.#deps;
    const { pod, cause, signal } = asker;
    try {
      const identity = await this.#identify(provider, asker);
      if (identity === "not asked") return [];
      const entries = await this.#provide(provider, repository, asker, identity);
      return [{ entries, account: identity?.source }];
    } catch (error) {
      signal.throwIfAborted();
      const why = errorMessage(error);
      const failed = `Credential provider ${provider.name} failed for ${repository}, pulling without it`;
      const entry = { what: "CredentialProviderFailed", message: `${failed}: ${why}`, pod, cause } as const;
      // What a program of the node prints may be a secret of the node: the pod's users do not see it.
      const data = error instanceof PluginExit && { data: { eventMessage: `${failed}: ${error.end}` } };
      journal.record({ kind: "observation", ...entry, ...data });
      log.warn("credential provider failed", { provider: provider.name, image: repository, error: why });
      return [];
    }
  }

  /** Undefined: as the node itself. */
  async #identify(
    { tokens }: CredentialProvider,
    { account, signal }: PullAsker,
  ): Promise<Identity | "not asked" | undefined> {
    if (tokens === undefined) return undefined;
    if (account === undefined) return tokens.required ? "not asked" : undefined;
    const { namespace, name } = account;
    const { uid, annotations } = await account.look(signal).catch((error: unknown) => {
      throw new Error(`failed to get service account: ${errorMessage(error)}`, { cause: error });
    });
    const has = (key: string): boolean => Object.hasOwn(annotations, key);
    // An account opts in by having the required annotations.
    if (!tokens.requiredAnnotations.every(has)) return "not asked";
    const sentKeys = [...tokens.requiredAnnotations, ...tokens.optionalAnnotations].filter(has);
    const token = await account.token(tokens.audience, uid, signal).catch((error: unknown) => {
      throw new Error(`failed to get service account token: ${errorMessage(error)}`, { cause: error });
    });
    const shown = Object.fromEntries(sentKeys.toSorted().map((key) => [key, annotations[key] ?? ""]));
    return { source: { uid, namespace, name }, token, annotations: shown };
  }

  async #provide(
    provider: CredentialProvider,
    repository: string,
    asker: PullAsker,
    identity: Identity | undefined,
  ): Promise<readonly RegistryEntry[]> {
    const { clock, hashing } = this.#deps;
    this.#purge();
    const hash = identity === undefined ? "" : hashing.sha256(identity.token);
    const account = identity && [identity.source, identity.annotations, ...this.#byToken(provider, hash)];
    const keyOf = (part: string): string => JSON.stringify([provider.name, part, account ?? null]);
    const names = { Image: repository, Registry: repository.split("/", 1)[0] ?? "", Global: "<global>" };
    for (const part of [names.Image, names.Registry, names.Global]) {
      const kept = this.#kept.get(keyOf(part));
      if (kept !== undefined && kept.untilMs > clock.monotonic()) return kept.entries;
    }
    const work = JSON.stringify([provider.name, repository, identity?.source ?? null, hash, identity?.annotations]);
    const run = (signal: AbortSignal): Promise<PluginAnswer> =>
      this.#run(provider, repository, { ...asker, signal }, identity);
    const answer = await this.#deps.shared.join(work, run, asker.signal);
    const echoes = answer.entries.some(({ credential }) => credential.password === identity?.token);
    if (echoes && provider.tokens?.cacheType !== "Token") {
      throw new Error("it returned the service account's token as the password, which only cacheType Token allows");
    }
    const keepMs = answer.cacheMs ?? provider.defaultCacheMs;
    if (keepMs > 0) {
      this.#kept.set(keyOf(names[answer.cacheKeyType]), {
        entries: answer.entries,
        untilMs: clock.monotonic() + keepMs,
      });
    }
    return answer.entries;
  }

  #byToken({ tokens }: CredentialProvider, hash: string): string[] {
    return tokens?.cacheType === "Token" ? [hash] : [];
  }

  async #run(
    provider: CredentialProvider,
    repository: string,
    { pod, cause, signal }: PullAsker,
    identity: Identity | undefined,
  ): Promise<PluginAnswer> {
    const { processes, journal, clock } = this.#deps;
    const { name, args, env } = provider;
    const message = `get credentials for ${repository} from provider ${name}`;
    const action: ActionInput = {
      what: "AskCredentialProvider",
      message,
      pod,
      cause,
      data: { provider: name },
      outcomeData: { provider: name },
    };
    return await perform(journal, clock, action, async () => {
      const stdin = pluginRequest(provider, repository, identity);
      const options = { stdin, environment: env, timeoutMs: pluginLimitMs, signal };
      const result = await processes.run(`${this.#directory}/${name}`, args, options);
      if (result.exitCode !== 0) {
        const end = `it exited with ${result.signal ?? `exit code ${result.exitCode}`}`;
        throw new PluginExit(end, said(result.stderr, identity?.token));
      }
      try {
        return decodePluginAnswer(result.stdout, provider);
      } catch (error) {
        throw new Error(`it ${errorMessage(error)}`, { cause: error });
      }
    });
  }

  /** Expired entries are removed even if they are never requested again. */
  #purge(): void {
    const nowMs = this.#deps.clock.monotonic();
    if (nowMs - this.#purgedAtMs < purgeMs) return;
    this.#purgedAtMs = nowMs;
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(key);
  }
}

/** A plugin ended with a failure. */
class PluginExit extends Error {
  /** How, without what it printed. */
  readonly end: string;

  constructor(end: string, printed: string) {
    super(printed === "" ? end : `${end}: ${printed}`);
    this.end = printed === "" ? end : `${end}; the kubelet's log says what it printed`;
  }
}

/** The end of a plugin's error output, without the token that it was given. */
function said(stderr: string, token: string | undefined): string {
  const text = token === undefined ? stderr : stderr.replaceAll(token, "…");
  return text.trim().slice(-longestShown);
}
