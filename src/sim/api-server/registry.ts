import { checkCsiNode } from "./csi-nodes.ts";
import { mergePatch, strategicMerge } from "./patches.ts";
import { checkStatus, createdPod, deletion, type DeleteOptions, marked, rfc3339 } from "./pods.ts";
import { clusterScoped } from "./request.ts";
import { Store, type Stored } from "./store.ts";
import { conflict, type Fields, fieldsAt, isFields, notFound, Refusal, type Value } from "./values.ts";

/** Where an object is. */
export interface Place {
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

export type Change = "replace" | "strategic" | "merge";

const maxEvents = 200;

/** Operations on objects by the rules of the API, independent of the client and protocol. */
export class Registry {
  readonly store = new Store();
  readonly #now: () => number;
  readonly #made = new Map<string, number>();

  /** @param now the server's wall clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  get({ resource, namespace, name }: Place): Stored {
    const found = this.store.get(resource, keyOf(namespace, name));
    if (found === undefined) throw notFound(resource, name);
    return found;
  }

  /** What time it is for the cluster's machines. */
  get time(): string {
    return rfc3339(this.#now());
  }

  /** @param uid default: generated */
  create(resource: string, namespace: string | undefined, object: Fields, uid?: string): Stored {
    const metadata = fieldsAt(object, "metadata");
    const { name } = metadata;
    if (typeof name !== "string" || name === "") {
      throw new Refusal(422, "Invalid", `${resource}: metadata.name: Required value`);
    }
    const place = clusterScoped.has(resource) ? undefined : namespace;
    const key = keyOf(place, name);
    if (this.store.get(resource, key) !== undefined) {
      throw new Refusal(409, "AlreadyExists", `${resource} "${name}" already exists`);
    }
    if (resource === "csinodes") checkCsiNode({}, object);
    const created = {
      ...object,
      metadata: {
        ...metadata,
        ...(place !== undefined && { namespace: place }),
        uid: uid ?? this.#makeUid(resource),
        creationTimestamp: this.time,
      },
    } as unknown as Value;
    const stored = this.store.put(resource, key, resource === "pods" ? createdPod(created) : created);
    if (resource === "events") this.#forgetEvents();
    return stored;
  }

  /** @param subresource `status`: changes only the status (and the metadata that a kubelet may set) */
  change(place: Place, how: Change, given: Fields, subresource?: string): Stored {
    const before = this.get(place);
    const { metadata } = before.value;
    const wanted = (
      how === "replace"
        ? given
        : how === "strategic"
          ? strategicMerge(before.value, given)
          : mergePatch(before.value, given)
    ) as Value;
    const { uid, resourceVersion } = fieldsAt(given, "metadata");
    if (uid !== undefined && uid !== metadata.uid && how !== "replace") {
      const why = `metadata.uid: Invalid value: ${JSON.stringify(uid)}: field is immutable`;
      throw new Refusal(422, "Invalid", `${place.resource} ${JSON.stringify(place.name)} is invalid: ${why}`);
    }
    if (uid !== undefined && uid !== metadata.uid) {
      throw conflict(
        place.resource,
        place.name,
        `Precondition failed: UID in precondition: ${JSON.stringify(uid)}, UID in object meta: ${metadata.uid}`,
      );
    }
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
      throw conflict(
        place.resource,
        place.name,
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    }
    const after = subresource === "status" ? withStatus(before.value, wanted) : withoutStatus(before.value, wanted);
    if (place.resource === "csinodes") checkCsiNode(before.value, after);
    if (place.resource === "pods" && subresource === "status") checkStatus(before.value, fieldsAt(after, "status"));
    // An equal object is not a change.
    if (JSON.stringify(after) === before.text) return before;
    return this.store.put(place.resource, before.key, after);
  }

  /** The remaining object, or its last version. */
  delete(place: Place, options: DeleteOptions): Stored {
    const found = this.get(place);
    const { uid } = found.value.metadata;
    const { preconditions } = options;
    if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
      throw conflict(
        place.resource,
        place.name,
        `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
      );
    }
    const after = place.resource === "pods" ? deletion(found.value, options, this.#now()) : "remove";
    if (after === "nothing") return found;
    // As real servers: watches see the final deletion time before the removal.
    if (after === "remove" && place.resource === "pods" && found.value.metadata.deletionGracePeriodSeconds !== 0) {
      this.store.put(place.resource, found.key, marked(found.value, 0, this.#now()));
    }
    if (after === "remove") return this.store.remove(place.resource, found.key) ?? found;
    return this.store.put(place.resource, found.key, after);
  }

  #makeUid(resource: string): string {
    const count = (this.#made.get(resource) ?? 0) + 1;
    this.#made.set(resource, count);
    return resource === "pods" ? `mirror-${count}` : `${resource}-${count}`;
  }

  /** Real servers keep events for an hour; nothing here reads old ones. */
  #forgetEvents(): void {
    const [oldest, ...rest] = this.store.list("events");
    if (oldest !== undefined && rest.length >= maxEvents) this.store.remove("events", oldest.key);
  }
}

export function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ""}/${name}`;
}

/** A Node's labels and annotations may change with its status, as kubelets do. */
function withStatus(before: Value, after: Value): Value {
  const { labels, annotations } = fieldsAt(after, "metadata");
  const metadata = {
    ...before.metadata,
    ...(isFields(labels) && { labels }),
    ...(isFields(annotations) && { annotations }),
  };
  return { ...before, metadata, status: after["status"] };
}

function withoutStatus(before: Value, after: Value): Value {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } = before.metadata;
  const kept = {
    uid,
    creationTimestamp,
    resourceVersion: before.metadata.resourceVersion,
    ...(deletionTimestamp !== undefined && { deletionTimestamp, deletionGracePeriodSeconds }),
  };
  const { status: _status, ...rest } = after;
  const status = before["status"];
  return {
    ...rest,
    metadata: { ...after.metadata, ...kept },
    ...(status !== undefined && { status }),
  };
}
