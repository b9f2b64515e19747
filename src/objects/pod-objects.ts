import type { Pod } from "../api/pod.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { PullAccount } from "../images/credential-provider.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConfigMapContent, ObjectLookup, SecretContent } from "../runtime/environment.ts";
import type { ApiObjects } from "./api-objects.ts";
import type { ServiceAccountTokens, TokenSource } from "./service-account-tokens.ts";
import { Collection } from "./collection.ts";
import type { RuntimeClass } from "./runtime-classes.ts";
import { type Service, serviceVariables } from "./service-variables.ts";

/** How long a start waits for what its pod refers to; after that it says what is missing, and is tried again. */
const settleLimitMs = 5000;

/** All that pods refer to at the API server. */
export class PodObjects implements ObjectLookup {
  /** The pod's service account, for who knows credentials of registries. */
  readonly account: (pod: Pod) => PullAccount | undefined;
  readonly services = new Collection<Service>();
  readonly runtimeClasses = new Collection<RuntimeClass>();
  readonly #clock: Clock;
  readonly #objects: ApiObjects;
  readonly #tokens: ServiceAccountTokens;

  constructor(
    clock: Clock,
    objects: ApiObjects,
    tokens: ServiceAccountTokens,
    account: (pod: Pod) => PullAccount | undefined,
  ) {
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

  serviceAccountToken(pod: Pod, source: TokenSource): ReturnType<ServiceAccountTokens["get"]> {
    return this.#tokens.get(pod, source);
  }

  serviceVariables(pod: Pod): readonly { readonly name: string; readonly value: string }[] {
    return serviceVariables(pod, this.services.all());
  }

  runtimeHandler(runtimeClass: string): string | undefined {
    return this.runtimeClasses.get(runtimeClass)?.handler;
  }

  async settle(pod: Pod, signal: AbortSignal): Promise<void> {
    if (!this.#objects.has(pod.metadata.uid)) return;
    const what = `what pod ${pod.metadata.namespace}/${pod.metadata.name} refers to`;
    try {
      await withDeadline(this.#clock, what, settleLimitMs, signal, async (limited) => {
        await Promise.all([
          this.#objects.known(pod.metadata.uid),
          this.services.known,
          pod.spec.runtimeClassName ? this.runtimeClasses.known : undefined,
          this.#tokens.refresh(pod, limited),
        ]);
      });
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
    }
  }
}
