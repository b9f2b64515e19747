import type { ConfigMapContent, SecretContent } from "../../api/object-content.ts";
import type { ObjectLookup } from "../../runtime/config/environment.ts";

/**
 * The simulated cluster's objects: ConfigMap `settings` and Secret `credentials`, whose key `revision` counts their
 * changes, and ConfigMap `late`, which is created later.
 */
export class SimObjects implements ObjectLookup {
  #revision = 0;
  #content = contentOf(0);
  #secret = secretOf(0);
  #lateIsThere = false;

  get revision(): number {
    return this.#revision;
  }

  get lateIsThere(): boolean {
    return this.#lateIsThere;
  }

  configMap(_namespace: string, name: string): ConfigMapContent | undefined {
    return name === "settings" || (name === "late" && this.#lateIsThere) ? this.#content : undefined;
  }

  secret(_namespace: string, name: string): SecretContent | undefined {
    return name === "credentials" ? this.#secret : undefined;
  }

  change(): void {
    this.#revision++;
    this.#content = contentOf(this.#revision);
    this.#secret = secretOf(this.#revision);
  }

  letLateArrive(): void {
    this.#lateIsThere = true;
  }
}

function contentOf(revision: number): ConfigMapContent {
  return { data: new Map([["revision", String(revision)]]), binaryData: new Map() };
}

/** Must never appear in a journal entry. */
export const secretMark = "hunter2";

function secretOf(revision: number): SecretContent {
  return {
    uid: "",
    type: "Opaque",
    data: new Map([["revision", new TextEncoder().encode(`${secretMark}-${revision}`)]]),
  };
}
