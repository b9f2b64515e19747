import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { PullAccount } from "../images/credential-provider.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConfigMapContent, SecretContent } from "../api/object-content.ts";
import type { NeededObjects, ObjectLookup } from "../runtime/config/environment.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { ServiceMemory } from "./service-memory.ts";
import type { ApiObjects } from "./api-objects.ts";
import type { ServiceAccountTokens, TokenSource } from "./service-account-tokens.ts";
import { Collection } from "./collection.ts";
import type { RuntimeClass } from "./runtime-classes.ts";
import { type Service, serviceVariables } from "./service-variables.ts";

/** How long a start waits for its pod's objects; after that it reports what is missing, and is retried. */
const settleLimitMs = 5000;
/** As upstream's first retry of a volume. */
const firstTokenRetryMs = 500;

/** Everything that pods refer to at the API server. */
export class PodObjects implements ObjectLookup {
  /** The pod's service account, for credential providers. */
  readonly account: (pod: Pod) => PullAccount | undefined;
  readonly services: Collection<Service>;
  readonly #remembered: Pick<ServiceMemory, "all" | "known">;
  readonly runtimeClasses = new Collection<RuntimeClass>();
  readonly #clock: Clock;
  readonly #objects: ApiObjects;
  readonly #tokens: ServiceAccountTokens;

  constructor(
    clock: Clock,
    objects: ApiObjects,
    tokens: ServiceAccountTokens,
    account: (pod: Pod) => PullAccount | undefined,
    known: { readonly services: Collection<Service>; readonly memory: Pick<ServiceMemory, "all" | "known"> },
  ) {
    this.services = known.services;
    this.#remembered = known.memory;
    this.account = account;
    this.#clock = clock;
    this.#objects = objects;
    this.#tokens = tokens;
  }

  configMap(namespace: string, name: string): ConfigMapContent | undefined {
    return this.#objects.configMap(namespace, name);
  }

  secret(namespace: string, name: string): SecretContent | undefined {
    return this.#objects.secret(namespace, name);
  }

  /** @throws NotKnownYetError like {@link configMap} */
  serviceAccountToken(pod: Pod, source: TokenSource): NonNullable<ReturnType<ServiceAccountTokens["get"]>> {
    const found = this.#tokens.get(pod, source);
    if (found === undefined) throw new NotKnownYetError("no token from the API server yet");
    return found;
  }

  /** @throws NotKnownYetError while the services are unknown; static pods run without */
  serviceVariables(pod: Pod): readonly { readonly name: string; readonly value: string }[] {
    const services = this.#remembered.all();
    if (services === undefined && !isStaticPod(pod)) {
      throw new NotKnownYetError("services have not yet been read at least once, cannot construct envvars");
    }
    return serviceVariables(pod, services ?? []);
  }

  runtimeHandler(runtimeClass: string): string | undefined {
    return this.runtimeClasses.get(runtimeClass)?.handler;
  }

  async settle(pod: Pod, { spec, tokensOf, services }: NeededObjects, signal: AbortSignal): Promise<void> {
    if (!this.#objects.has(pod.metadata.uid)) return;
    const what = `the objects that pod ${pod.metadata.namespace}/${pod.metadata.name} refers to`;
    try {
      await withDeadline(this.#clock, what, settleLimitMs, signal, async (limited) => {
        await Promise.all([
          this.#objects.known(pod.metadata.namespace, spec),
          services && (services === "live" ? this.services.known : this.#remembered.known),
          spec.runtimeClassName ? this.runtimeClasses.known : undefined,
          tokensOf && this.#haveTokens(pod, tokensOf, limited),
        ]);
      });
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
    }
  }

  renew(pod: Pod): void {
    if (this.#objects.has(pod.metadata.uid)) this.#tokens.renew(pod);
  }

  /**
   * A server rejects a token until it knows the pod's node: retry after a moment, unless the pod has ended meanwhile.
   */
  async #haveTokens(pod: Pod, volumes: readonly Volume[], signal: AbortSignal): Promise<void> {
    for (let pauseMs = firstTokenRetryMs; this.#objects.has(pod.metadata.uid); pauseMs *= 2) {
      await this.#tokens.refresh(pod, volumes, signal);
      if (this.#tokens.has(pod, volumes)) return;
      await this.#clock.sleep("retry of a token request", pauseMs, signal);
    }
  }
}
