import { Emitter } from "../base/emitter.ts";
import { askedPauseMs } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { formatTime } from "../base/time.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { CertificateTools, RequestTemplate, KeyPair } from "../ports/certificates.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { CertificateStore, StoredPair } from "./certificate-store.ts";
import type { CertificateFacts } from "./metrics.ts";
import { type Decision, requestCertificate, RequestRefusedError, waitsFor } from "./signing-requests.ts";
import { renewalMs, stateOf, timeProblem } from "./validity.ts";
import { lackOf, type Purpose, requestName, signers, usagesOf } from "./request-template.ts";

/** A client of the API server with one identity; disposed of when the request is over. */
export interface RequestClient extends Disposable {
  readonly client: ApiClient;
}

export interface ManagerDependencies {
  readonly store: CertificateStore;
  readonly tools: CertificateTools;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /**
   * The credentials for the request.
   * @param current undefined when there is none, or it has expired
   * @throws Error with why a request is impossible, and the remedy
   */
  readonly open: (current: StoredPair | undefined) => Promise<RequestClient>;
}

export interface ManagerConfig {
  readonly purpose: Purpose;
  /** The desired certificate; undefined: none can be requested yet. */
  readonly template: () => RequestTemplate | undefined;
  /** Whether a certificate is renewed before it expires (rotateCertificates), or not before then. */
  readonly renews: boolean;
  /** Counts when the store has nothing that is valid, and is renewed at once: kubeadm's way to begin. */
  readonly initial?: KeyPair;
}

const firstRetryMs = 2000;
const longestRetryMs = 32_000;
const jitter = 0.1;
/** The wall clock may jump, and files may be replaced: both are checked at least this often. */
const longestWaitMs = 60_000;
/** A request decided sooner needed no manual approval. */
const quietMs = 5000;

/** Gets a certificate of the node from the API server, keeps it, and renews it in time (upstream's certificate.Manager). */
export class CertificateManager {
  readonly #deps: ManagerDependencies;
  readonly #config: ManagerConfig;
  readonly #wait: WakeableWait;
  /** How old certificates were when others took their place, seconds. */
  readonly #ages: number[] = [];
  #pair: StoredPair | undefined;
  #storedMs: number | undefined;
  /** Random part of the next renewal's time: constant for one certificate. */
  #uniform: number;
  #renewNow = false;
  /** The template of the current certificate: a signer may omit requested parts, and would do so again. */
  #issuedFor = "";
  #journal: Recorder | undefined;
  /** The entry of the current request. */
  #action: number | undefined;
  readonly #changes = new Emitter();
  #failures = 0;
  /** The pause that the server requested at the last failure, milliseconds. */
  #askedMs = 0;
  #renewErrors = 0;
  #lastProblem = "";
  /** The last journal message: retries do not repeat it. */
  #reportedProblem = "";
  #asking: { readonly template: RequestTemplate; readonly abort: AbortController } | undefined;

  constructor(deps: ManagerDependencies, config: ManagerConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#uniform = deps.random.uniform();
    this.#wait = new WakeableWait(deps.clock, `the node's ${config.purpose} certificate to be renewed`);
  }

  /** The certificate in use; undefined if there is none, or it has expired. */
  get current(): StoredPair | undefined {
    const pair = this.#pair;
    return pair !== undefined && stateOf(pair.chain, this.#deps.clock.now()) !== "expired" ? pair : undefined;
  }

  /** Calls back whenever another certificate counts, until the result is disposed of. */
  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  /** Why there is no certificate, in one clause. */
  get problem(): string {
    const pair = this.#pair;
    const { purpose } = this.#config;
    const time = pair && timeProblem(pair.chain, this.#deps.clock.now());
    const what =
      time === undefined ? `this node has no ${purpose} certificate yet` : `the ${purpose} certificate: ${time}`;
    return this.#lastProblem === "" ? what : `${what}: ${this.#lastProblem}`;
  }

  /** For `podwright doctor`. */
  get check(): { readonly name: string; readonly ok: boolean; readonly detail: string } {
    const { current } = this;
    const name = `${this.#config.purpose}-certificate`;
    if (current === undefined) return { name, ok: false, detail: this.problem };
    const until = `good until ${formatTime(current.chain[0].notAfterMs)}`;
    const problem = timeProblem(current.chain, this.#deps.clock.now()) ?? this.#lastProblem;
    return { name, ok: true, detail: problem === "" ? until : `${until}; ${problem}` };
  }

  get facts(): CertificateFacts {
    const { current } = this;
    const leftMs =
      current === undefined ? Number.POSITIVE_INFINITY : current.chain[0].notAfterMs - this.#deps.clock.now();
    return { ttlSeconds: Math.trunc(leftMs / 1000), renewErrors: this.#renewErrors, ages: this.#ages };
  }

  /** Reads the stored certificate; to be called first. Never rejects: an unreadable one is requested again. */
  async load(): Promise<void> {
    const { log, clock } = this.#deps;
    const { initial, purpose } = this.#config;
    await this.#reload();
    if (this.current === undefined && initial !== undefined) await this.#begin(initial);
    const pair = this.#pair;
    if (pair === undefined) return;
    const [own] = pair.chain;
    const fields = { purpose, path: pair.path, until: formatTime(own.notAfterMs) };
    const problem = timeProblem(pair.chain, clock.now());
    if (problem === undefined) log.info("found a certificate of this node", fields);
    else log.warn("certificate of this node has a problem", { ...fields, problem });
  }

  /** The template may have changed. */
  wake(): void {
    const asking = this.#asking;
    if (asking !== undefined && JSON.stringify(asking.template) !== JSON.stringify(this.#config.template())) {
      asking.abort.abort(new Error("the names that the certificate must hold have changed"));
    }
    this.#wait.wake();
  }

  /** Works until the signal aborts. Never rejects. */
  async run(journal: Recorder, signal: AbortSignal): Promise<void> {
    const { random } = this.#deps;
    this.#journal = journal;
    while (!signal.aborted) {
      const template = this.#config.template();
      const cause = template && this.#causeToAsk(template);
      if (template === undefined || cause === undefined) {
        await this.#wait.for(this.#restMs(), signal);
        continue;
      }
      if (await this.#ask(template, cause, signal)) continue;
      if (signal.aborted) return;
      const delayMs = Math.min(firstRetryMs * 2 ** (this.#failures - 1), longestRetryMs);
      await this.#wait.for(Math.max(delayMs * (1 + jitter * random.uniform()), this.#askedMs), signal);
      if (this.current === undefined) await this.#reload();
    }
  }

  /** Someone may have installed another one. */
  async #reload(): Promise<void> {
    const { store, log } = this.#deps;
    try {
      const found = await store.current(this.#deps.clock.now());
      if (found === undefined || found.certificate === this.#pair?.certificate) return;
      this.#use(found);
    } catch (error) {
      log.warn("cannot use a stored certificate", { purpose: this.#config.purpose, error: errorMessage(error) });
    }
  }

  async #begin(initial: KeyPair): Promise<void> {
    const { store, clock, log } = this.#deps;
    try {
      const pair = store.inspect(initial, "the kubeconfig");
      if (stateOf(pair.chain, clock.now()) === "expired") {
        this.#pair = pair;
        return;
      }
      this.#use(await store.update(initial, clock.now()));
      this.#renewNow = this.#config.renews;
    } catch (error) {
      log.warn("cannot use the kubeconfig's certificate", { error: errorMessage(error) });
    }
  }

  /** Until something is due, milliseconds; a little longer than that, so that it is. */
  #restMs(): number {
    const dueMs = this.#dueMs();
    if (dueMs === undefined) return longestWaitMs;
    return Math.min(Math.max(dueMs - this.#deps.clock.now(), 0) + 1, longestWaitMs);
  }

  #dueMs(): number | undefined {
    const pair = this.#pair;
    if (pair === undefined) return undefined;
    const [own] = pair.chain;
    return this.#config.renews ? renewalMs(own, this.#uniform, this.#storedMs) : own.notAfterMs + 1;
  }

  /** Why a certificate must be requested now; undefined: not needed. */
  #causeToAsk(template: RequestTemplate): Cause | undefined {
    const pair = this.#pair;
    if (pair === undefined) return { code: "NoCertificate", message: "no usable certificate exists" };
    if (this.current === undefined) {
      return { code: "CertificateExpired", message: "the previous certificate has expired" };
    }
    const lack = this.#issuedFor === JSON.stringify(template) ? undefined : lackOf(pair.chain[0], template);
    if (lack !== undefined) return { code: "CertificateNamesDiffer", message: lack };
    if (this.#renewNow) {
      return { code: "CertificateIsInitial", message: "the current certificate is the initial one of the kubeconfig" };
    }
    const dueMs = this.#dueMs();
    if (dueMs === undefined || this.#deps.clock.now() < dueMs) return undefined;
    return {
      code: "CertificateExpires",
      message: `the current certificate expires at ${formatTime(pair.chain[0].notAfterMs)}`,
    };
  }

  /** @returns whether to continue immediately */
  async #ask(template: RequestTemplate, cause: Cause, signal: AbortSignal): Promise<boolean> {
    const { log } = this.#deps;
    const { purpose } = this.#config;
    const abort = new AbortController();
    using _signal = onAbort(signal, () => abort.abort(signal.reason));
    this.#asking = { template, abort };
    this.#action ??= this.#journal?.record({
      ...{ kind: "action", what: "RequestCertificate", cause },
      message: `request a ${purpose} certificate`,
    });
    try {
      await this.#get(template, abort.signal);
      return true;
    } catch (error) {
      // Canceled, because the node stops or the template changed.
      if (abort.signal.aborted) return !signal.aborted;
      this.#failures++;
      this.#renewErrors++;
      this.#askedMs = askedPauseMs(error);
      const { current } = this;
      const goodUntil = current && formatTime(current.chain[0].notAfterMs);
      const message = errorMessage(error);
      log.warn("certificate request failed", {
        purpose,
        error: message,
        ...(goodUntil !== undefined && { goodUntil }),
      });
      // Each has another name.
      const problem = error instanceof RequestRefusedError ? error.why : message;
      if (problem !== this.#reportedProblem) {
        this.#journal?.record({
          ...{ kind: "note", what: "CertificateNotIssued", cause },
          message: `no new ${purpose} certificate: ${message}`,
        });
      }
      this.#reportedProblem = problem;
      this.#lastProblem = message;
      return false;
    } finally {
      this.#asking = undefined;
    }
  }

  async #get(template: RequestTemplate, signal: AbortSignal): Promise<void> {
    const { store, tools, clock, log } = this.#deps;
    const { purpose } = this.#config;
    const key = await store.pendingKey();
    const publicKey = tools.publicKey(key);
    const usages = usagesOf(purpose, publicKey);
    const name = requestName(publicKey, template, usages, (data) => tools.sha512t256(data));
    const signerName = signers[purpose];
    let noise: Disposable | undefined;
    const onWaiting = (decision: Decision): void => {
      this.#lastProblem = waitsFor(name, decision, signerName);
      noise?.[Symbol.dispose]();
      noise = clock.timer(`request ${name} to be decided`, quietMs, () => {
        log.info("waiting for a certificate", { purpose, request: waitsFor(name, decision, signerName) });
      });
    };
    const { current } = this;
    // A node without a certificate keeps its key until the request is decided.
    const isFirst = purpose === "client" && current === undefined;
    const afterRefusal = isFirst
      ? `to request again, delete it (kubectl delete csr ${name})`
      : "another request follows, with a new key";
    using channel = await this.#deps.open(current);
    try {
      const spec = { name, signerName, usages, request: tools.signingRequest(key, template), afterRefusal };
      const certificate = await requestCertificate({ client: channel.client, clock, onWaiting }, spec, signal);
      await this.#take({ certificate, key }, template, name);
    } catch (error) {
      // Approvers may refuse for temporary reasons, and a decided request is final.
      if (error instanceof RequestRefusedError && !isFirst) await store.dropPendingKey();
      throw error;
    } finally {
      noise?.[Symbol.dispose]();
    }
  }

  /** @throws Error when the certificate is of no use; the next try is with another key then */
  async #take(issued: KeyPair, template: RequestTemplate, name: string): Promise<void> {
    const { store, tools, clock, random, log } = this.#deps;
    const { purpose } = this.#config;
    const nowMs = clock.now();
    try {
      const problem = timeProblem(tools.certificates(issued.certificate), nowMs);
      if (problem !== undefined && stateOf(tools.certificates(issued.certificate), nowMs) === "expired") {
        throw new Error(`the certificate of request ${name} is not usable: ${problem}`);
      }
      if (!tools.belong(issued)) throw new Error(`the certificate of request ${name} is not for this node's key`);
      if (problem !== undefined) log.warn("new certificate has a problem", { purpose, problem });
    } catch (error) {
      await store.dropPendingKey();
      throw error;
    }
    const before = this.#pair;
    const pair = await store.update(issued, nowMs);
    const [own] = pair.chain;
    const difference = lackOf(own, template);
    if (difference !== undefined) {
      log.warn("signer issued a certificate that differs from the request", { purpose, difference });
    }
    if (before !== undefined) this.#ages.push((nowMs - before.chain[0].notBeforeMs) / 1000);
    this.#issuedFor = JSON.stringify(template);
    this.#storedMs = nowMs;
    this.#uniform = random.uniform();
    this.#renewNow = false;
    this.#failures = 0;
    this.#lastProblem = "";
    this.#reportedProblem = "";
    const until = formatTime(own.notAfterMs);
    log.info("using a new certificate", { purpose, path: pair.path, until });
    this.#journal?.record({
      ...{ kind: "outcome", what: "RequestCertificate", result: "done" },
      ...(this.#action !== undefined && { of: this.#action }),
      message: `a new ${purpose} certificate, good until ${until}`,
    });
    this.#action = undefined;
    this.#use(pair);
  }

  #use(pair: StoredPair): void {
    this.#pair = pair;
    this.#changes.emit();
  }
}
