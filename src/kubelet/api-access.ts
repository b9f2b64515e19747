import type { Watcher } from "../objects/api-objects.ts";
import type { ServiceAccountTokens } from "../objects/service-account-tokens.ts";

/** What rooms ask of the API server beside requests of their own. */
export interface ApiAccess {
  /** Keeps up with objects. */
  readonly watch: Watcher;
  readonly tokens: Pick<ServiceAccountTokens, "obtain">;
}
