import type { EvictionManager } from "../../eviction/manager.ts";
import type { IncarnationClock } from "../clock.ts";
import type { SimConnection } from "../cri.ts";
import type { Gate } from "../gate.ts";
import type { Built } from "./build-kubelet.ts";
import type { ManifestReader } from "./manifest-reader.ts";
import type { AskedParts } from "./user-requests.ts";

/** One run of podwright. */
export interface Incarnation extends Built {
  readonly connection: SimConnection;
  readonly clock: IncarnationClock;
  readonly gate: Gate;
  readonly controller: AbortController;
  readonly manifests: ManifestReader;
  readonly evictions: EvictionManager | undefined;
  readonly asked: AskedParts;
}
