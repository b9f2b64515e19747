import type { ReflectorHandler } from "../api-client/reflector.ts";
import type { Pod } from "../api/pod.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConfigMapContent, ObjectLookup, SecretContent } from "../runtime/environment.ts";
import type { ApiObjects } from "./api-objects.ts";
import type { ServiceAccountTokens, TokenSource } from "./service-account-tokens.ts";
import { type Service, serviceVariables } from "./service-variables.ts";

/** How long a start waits for what its pod refers to; after that it says what is missing, and is tried again. */
const settleLimitMs = 5000;

/** All that pods refer to at the API server. */
export class PodObjects implements ObjectLookup, ReflectorHandler<Service> {
  readonly #clock: Clock;
  readonly #objects: ApiObjects;
  readonly #tokens: ServiceAccountTokens;
  readonly #services = new Map<string, Service>();
  readonly #servicesKnown = Promise.withResolvers<void>();

  constructor(clock: Clock, objects: ApiObjects, tokens: ServiceAccountTokens) {
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
    return serviceVariables(pod, this.#services.values());
  }

  async settle(pod: Pod, signal: AbortSignal): Promise<void> {
    if (!this.#objects.has(pod.metadata.uid)) return;
    const what = `what pod ${pod.metadata.namespace}/${pod.metadata.name} refers to`;
    try {
      await withDeadline(this.#clock, what, settleLimitMs, signal, async (limited) => {
        const known = Promise.all([this.#objects.known(pod.metadata.uid), this.#servicesKnown.promise]);
        await Promise.all([known, this.#tokens.refresh(pod, limited)]);
      });
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
    }
  }

  replaced(services: readonly Service[]): void {
    this.#services.clear();
    for (const service of services) this.#services.set(keyOf(service), service);
    this.#servicesKnown.resolve();
  }

  changed(type: "ADDED" | "MODIFIED" | "DELETED", service: Service): void {
    if (type === "DELETED") this.#services.delete(keyOf(service));
    else this.#services.set(keyOf(service), service);
  }
}

function keyOf({ metadata }: Service): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}
