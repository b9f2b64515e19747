import { ApiError } from "./api-error.ts";
import { loopbackUser } from "./authn.ts";
import { resourceNamed } from "./catalog.ts";
import { type ApiObject, timestamp } from "./objects.ts";
import type { Registry } from "./registry.ts";

export interface RecordedEvent {
  readonly reason: string;
  readonly type: "Normal" | "Warning";
  readonly message: string;
  /** The reporter, such as `default-scheduler`. */
  readonly component: string;
}

/** Records an event about an object for a component of the control plane, unless its namespace rejects it. */
export function recordEvent(registry: Registry, about: ApiObject, event: RecordedEvent): void {
  const { name, namespace = "default", uid, resourceVersion } = about.metadata;
  const now = timestamp();
  const target = { resource: resourceNamed("events"), namespace, name: "" };
  const object = {
    metadata: { generateName: `${name}.`, namespace },
    involvedObject: { kind: about.kind, namespace, name, uid, apiVersion: about.apiVersion, resourceVersion },
    reason: event.reason,
    message: event.message,
    type: event.type,
    source: { component: event.component },
    reportingComponent: event.component,
    reportingInstance: "",
    firstTimestamp: now,
    lastTimestamp: now,
    eventTime: null,
    count: 1,
  };
  try {
    registry.create(target, object, { user: loopbackUser });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
