/**
 * Controllers of a cluster, as seen by a node: each creates and deletes pods at the API server like a Deployment, a
 * DaemonSet, a Job or a StatefulSet, and waits for the result.
 */
import type { ApiObject, Fields } from "../apiserver/objects.ts";
import type { TestApiServer } from "../apiserver/server.ts";

const limitMs = 60_000;

export type PodTemplate = (name: string, version: string) => Fields;

interface Seen {
  readonly phase?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

function seen(pod: ApiObject | undefined): Seen {
  return (pod as { readonly status?: Seen } | undefined)?.status ?? {};
}

export function isReady(pod: ApiObject | undefined): boolean {
  return seen(pod).conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

export class Workloads {
  readonly #server: TestApiServer;
  readonly #template: PodTemplate;
  #made = 0;

  constructor(server: TestApiServer, template: PodTemplate) {
    this.#server = server;
    this.#template = template;
  }

  create(name: string, version = "1"): string {
    this.#server.admin.create(this.#template(name, version));
    return name;
  }

  async ready(...names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#until(name, isReady)));
  }

  /** Deletes the pods and waits until they are gone from the API server. */
  async remove(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#server.admin.delete("pods", `default/${name}`);
    await Promise.all(names.map((name) => this.#until(name, (pod) => pod === undefined)));
  }

  /** Like a ReplicaSet: with new names. */
  async replicas(set: string, count: number, version = "1"): Promise<string[]> {
    const names = Array.from({ length: count }, () => this.create(`${set}-${(this.#made++).toString(36)}`, version));
    await this.ready(...names);
    return names;
  }

  /**
   * Like a Deployment's rolling update with maxSurge 1 and maxUnavailable 0: a new pod becomes ready, then an old one
   * is deleted.
   */
  async roll(set: string, old: readonly string[], version: string): Promise<string[]> {
    const names: string[] = [];
    for (const name of old) {
      names.push(...(await this.replicas(set, 1, version)));
      await this.remove(name);
    }
    return names;
  }

  /** Like a StatefulSet: one after the other by ordinal. */
  async inOrder(set: string, count: number): Promise<string[]> {
    const names: string[] = [];
    for (let index = 0; index < count; index++) {
      names.push(this.create(`${set}-${index}`));
      await this.ready(`${set}-${index}`);
    }
    return names;
  }

  /** Like a StatefulSet's rolling update: from the last to the first, each under its own name again. */
  async replaceInOrder(names: readonly string[], version: string): Promise<void> {
    for (const name of names.toReversed()) {
      await this.remove(name);
      this.create(name, version);
      await this.ready(name);
    }
  }

  /** Like a Job: a new pod after a failed one, up to the limit; returns the name of the one that succeeded. */
  async job(name: string, backoffLimit: number): Promise<string> {
    for (let attempt = 0; attempt <= backoffLimit; attempt++) {
      const pod = this.create(`${name}-${attempt}`, String(attempt));
      const isOver = (object: ApiObject | undefined): boolean =>
        ["Succeeded", "Failed"].includes(seen(object).phase ?? "");
      if (seen(await this.#until(pod, isOver)).phase === "Succeeded") return pod;
    }
    throw new Error(`job ${name} has reached its backoffLimit`);
  }

  async #until(name: string, holds: (pod: ApiObject | undefined) => boolean): Promise<ApiObject | undefined> {
    return await this.#server.admin.until("pods", `default/${name}`, holds, limitMs);
  }
}
