import { randomUUID } from "node:crypto";
import {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  type ErrorSubject,
  forbidden,
  invalid,
  notFound,
} from "./api-error.ts";
import type { User } from "./authn.ts";
import { decode } from "./decode.ts";
import { type DeleteOptions, deletePlan, markDeleted } from "./deletion.ts";
import { jsonPatch, mergePatch } from "./json-patch.ts";
import {
  type ApiObject,
  type Draft,
  draftAt,
  draftOf,
  type Fields,
  isFields,
  type Json,
  listAt,
  sameJson,
  textAt,
  timestamp,
} from "./objects.ts";
import { apiVersionOf, keyOf, type Resource } from "./resource.ts";
import type { Store } from "./store.ts";
import { strategicMerge } from "./strategic-merge.ts";

/** A request's sender and options. */
export interface Caller {
  readonly user: User;
  readonly dryRun?: boolean;
  /** Whether unknown members are an error; otherwise they are dropped and passed to `warn`. */
  readonly strict?: boolean;
  readonly warn?: (warning: string) => void;
}

/** The identity of an existing or new object. */
export interface Target {
  readonly resource: Resource;
  /** `""` without namespaces. */
  readonly namespace: string;
  readonly name: string;
  /** `""` for the object itself. */
  readonly subresource?: string;
}

/** A change, which admission may reject, and may complete while it is a draft. */
export interface Change {
  readonly operation: "create" | "update" | "delete";
  readonly target: Target;
  readonly user: User;
  /** Undefined for a deletion. */
  readonly draft: Draft | undefined;
  readonly old: ApiObject | undefined;
}

/** @throws ApiError if the change is rejected */
export type Admission = (change: Change) => void;

/** A patch by its media type. */
export type PatchType =
  | "application/json-patch+json"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json";

const suffixLetters = "bcdfghjklmnpqrstvwxz2456789";
const namePattern = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

function subjectOf({ resource, name }: Target): ErrorSubject {
  return { group: resource.group, resource: resource.plural, name };
}

function requireNoNewFinalizers(target: Target, draft: Draft, old: ApiObject): void {
  const known = new Set(listAt(old, "metadata.finalizers"));
  const isNew = listAt(draft, "metadata.finalizers").some((each) => !known.has(each));
  if (old.metadata.deletionTimestamp === undefined || !isNew) return;
  const why = "Forbidden: no new finalizers can be added if the object is being deleted";
  throw invalid(subjectOf(target), target.resource.kind, [["metadata.finalizers", why]]);
}

/** The API's rules for creating, changing and deleting objects of the store. Uses the wall clock. */
export class Registry {
  readonly store: Store;
  readonly #admissions: Admission[] = [];

  constructor(store: Store) {
    this.store = store;
  }

  /** Adds an admission for all later changes. */
  admitBy(admission: Admission): void {
    this.#admissions.push(admission);
  }

  find({ resource, namespace, name }: Target): ApiObject | undefined {
    return this.store.get(resource.storage, keyOf(namespace, name));
  }

  /** @throws ApiError 404 */
  get(target: Target): ApiObject {
    const found = this.find(target);
    if (found === undefined) throw notFound(subjectOf(target));
    return found;
  }

  /** @param target with name `""`: the object's own name */
  create(target: Target, given: Fields, caller: Caller): ApiObject {
    const { resource } = target;
    const draft = this.#received(target, given, caller);
    const metadata = draftAt(draft, "metadata");
    if (textAt(metadata, "name") === "" && textAt(metadata, "generateName") !== "") {
      metadata["name"] = textAt(metadata, "generateName") + this.#suffix();
    }
    const named = { ...target, name: textAt(metadata, "name") };
    const { name } = named;
    const pattern = resource.strategy.anyName === true ? /^(?!\.\.?$)[^/%]{1,253}$/ : namePattern;
    if (!pattern.test(name)) {
      const problem =
        name === ""
          ? "Required value: name or generateName is required"
          : `Invalid value: ${JSON.stringify(name)}: must be a DNS subdomain`;
      throw invalid(subjectOf(named), resource.kind, [["metadata.name", problem]]);
    }
    if (textAt(metadata, "resourceVersion") !== "") {
      throw new ApiError(500, "", "resourceVersion should not be set on objects to be created");
    }
    for (const member of ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]) delete metadata[member];
    metadata["uid"] = randomUUID();
    metadata["creationTimestamp"] = timestamp();
    if (resource.strategy.countsGenerations === true) metadata["generation"] = 1;
    this.#requireNamespace(named);
    resource.strategy.create?.(draft, caller.user);
    this.#admit({ operation: "create", target: named, user: caller.user, draft, old: undefined });
    this.#validate(named, draft, undefined);
    const key = keyOf(target.namespace, name);
    if (this.store.get(resource.storage, key) !== undefined) throw alreadyExists(subjectOf(named));
    return caller.dryRun === true ? (draft as ApiObject) : this.store.put(resource.storage, key, draft);
  }

  /** Replaces an object, or its part in a subresource. */
  update(target: Target, given: Fields, caller: Caller): ApiObject {
    const old = this.get(target);
    const draft = this.#received(target, given, caller);
    const version = textAt(draft, "metadata.resourceVersion");
    if (version === "" && target.resource.strategy.needsResourceVersion === true) {
      const subject = subjectOf(target);
      throw invalid(subject, subject.resource, [
        ["metadata.resourceVersion", "Invalid value: 0: must be specified for an update"],
      ]);
    }
    return this.#replace(target, draft, old, caller);
  }

  patch(target: Target, type: PatchType, patch: Json, caller: Caller): ApiObject {
    const old = this.get(target);
    // A patch applies to the path's version, not the stored one.
    const { conversion } = target.resource;
    const shown = conversion === undefined ? old : conversion.fromStored(old);
    const patched = this.#patched(target, type, shown, patch);
    if (!isFields(patched)) throw badRequest("the patch makes something else than an object");
    const draft = this.#received(target, patched, caller);
    // In an update the UID is a precondition; a patch must not change it.
    if (textAt(draft, "metadata.uid") !== old.metadata.uid) {
      const why = `Invalid value: ${JSON.stringify(textAt(draft, "metadata.uid"))}: field is immutable`;
      throw invalid(subjectOf(target), target.resource.kind, [["metadata.uid", why]]);
    }
    return this.#replace(target, draft, old, caller);
  }

  /**
   * Deletes an object, or marks it as terminating.
   * @returns its last state, and whether it was removed
   */
  delete(
    target: Target,
    options: DeleteOptions,
    caller: Caller,
  ): { readonly object: ApiObject; readonly gone: boolean } {
    const old = this.get(target);
    const { uid, resourceVersion } = options.preconditions ?? {};
    const subject = { ...subjectOf(target), resource: target.resource.kind };
    if (uid !== undefined && uid !== old.metadata.uid) {
      throw conflict(
        subject,
        `the UID in the precondition (${uid}) does not match the UID in record (${old.metadata.uid}). The object might have been deleted and then recreated`,
      );
    }
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
      const found = old.metadata.resourceVersion;
      throw conflict(
        subject,
        `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${found}). The object might have been modified`,
      );
    }
    this.#admit({ operation: "delete", target, user: caller.user, draft: undefined, old });
    const { storage, strategy } = target.resource;
    const key = keyOf(target.namespace, target.name);
    const plan = deletePlan(old, strategy, options);
    if (caller.dryRun === true) {
      return { object: typeof plan === "string" ? old : (plan as ApiObject), gone: plan === "remove" };
    }
    // Marked first if it supports grace periods, so that watches see it terminating.
    if (plan === "remove" && strategy.graceSeconds !== undefined && old.metadata.deletionGracePeriodSeconds !== 0) {
      this.store.put(storage, key, markDeleted(old, 0));
    }
    if (plan === "remove") return { object: this.store.remove(storage, key) ?? old, gone: true };
    if (plan === "nothing") return { object: old, gone: false };
    return { object: this.store.put(storage, key, plan), gone: false };
  }

  #received(target: Target, given: Fields, caller: Caller): Draft {
    const { resource, namespace, name } = target;
    const expected = apiVersionOf(resource);
    const draft = draftOf(given);
    draft["apiVersion"] ??= expected;
    draft["kind"] ??= resource.kind;
    if (draft["apiVersion"] !== expected || draft["kind"] !== resource.kind) {
      throw badRequest(
        `${textAt(draft, "apiVersion")} ${textAt(draft, "kind")} in the data does not match the expected ${expected} ${resource.kind}`,
      );
    }
    const metadata = draftAt(draft, "metadata");
    if (name !== "" && (metadata["name"] ?? name) !== name) {
      throw badRequest(
        `the name of the object (${textAt(metadata, "name")}) does not match the name on the URL (${name})`,
      );
    }
    if (name !== "") metadata["name"] = name;
    if (resource.namespaced) {
      if ((metadata["namespace"] ?? namespace) !== namespace) {
        throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
      }
      metadata["namespace"] = namespace;
    } else {
      delete metadata["namespace"];
    }
    // Field ownership is not tracked.
    delete metadata["managedFields"];
    for (const member of ["labels", "annotations", "ownerReferences", "finalizers"]) {
      if (metadata[member] === null) delete metadata[member];
    }
    return this.#decoded(resource, resource.conversion?.toStored(draft) ?? draft, caller);
  }

  #decoded(resource: Resource, given: Fields, caller: Caller): Draft {
    const version = apiVersionOf(resource);
    const { object, unknown } = decode(version, resource.kind, given);
    const warnings = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
    if (caller.strict === true && warnings.length > 0) {
      const type = `${resource.kind} in version ${JSON.stringify(version)} cannot be handled as a ${resource.kind}`;
      throw badRequest(`${type}: strict decoding error: ${warnings.join(", ")}`);
    }
    for (const warning of warnings) caller.warn?.(warning);
    return draftOf(object);
  }

  #patched(target: Target, type: PatchType, object: ApiObject, patch: Json): Json {
    if (type === "application/json-patch+json") return jsonPatch(object, patch);
    if (!isFields(patch)) throw badRequest("a merge patch is an object");
    if (type === "application/merge-patch+json") return mergePatch(object, patch);
    return strategicMerge(target.resource.kind, object, patch);
  }

  #replace(target: Target, draft: Draft, old: ApiObject, caller: Caller): ApiObject {
    const { resource, subresource = "" } = target;
    const metadata = draftAt(draft, "metadata");
    const version = textAt(metadata, "resourceVersion");
    const uid = textAt(metadata, "uid");
    if (uid !== "" && uid !== old.metadata.uid) throw this.#wrongUid(target, uid, old);
    if (version !== "" && version !== old.metadata.resourceVersion) {
      throw conflict(
        subjectOf(target),
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    }
    if (subresource === "") resource.strategy.update?.(draft, old);
    else resource.strategy.updateSubresource?.(draft, old, subresource);
    for (const name of ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]) {
      const kept = old.metadata[name];
      if (kept === undefined) delete metadata[name];
      else metadata[name] = kept;
    }
    metadata["resourceVersion"] = old.metadata.resourceVersion;
    requireNoNewFinalizers(target, draft, old);
    if (resource.strategy.countsGenerations === true && !sameJson(draft["spec"], old["spec"])) {
      metadata["generation"] = (old.metadata.generation ?? 0) + 1;
    }
    this.#admit({ operation: "update", target, user: caller.user, draft, old });
    this.#validate(target, draft, old);
    if (caller.dryRun === true) return draft as ApiObject;
    const key = keyOf(target.namespace, target.name);
    // The last finalizer of a terminating object was removed.
    const isDue = old.metadata.deletionTimestamp !== undefined && (old.metadata.deletionGracePeriodSeconds ?? 0) === 0;
    if (isDue && listAt(draft, "metadata.finalizers").length === 0 && listAt(draft, "spec.finalizers").length === 0) {
      this.store.put(resource.storage, key, draft);
      return this.store.remove(resource.storage, key) ?? old;
    }
    // An update without changes creates no revision.
    return sameJson(draft, old) ? old : this.store.put(resource.storage, key, draft);
  }

  #admit(change: Change): void {
    for (const admission of this.#admissions) admission(change);
  }

  #validate(target: Target, draft: Draft, old: ApiObject | undefined): void {
    const problems = target.resource.strategy.validate?.(draft, old, target.subresource ?? "") ?? [];
    if (problems.length > 0) throw invalid(subjectOf(target), target.resource.kind, problems);
  }

  #requireNamespace(target: Target): void {
    if (!target.resource.namespaced) return;
    const namespace = this.store.get("namespaces", target.namespace);
    if (namespace === undefined) throw notFound({ group: "", resource: "namespaces", name: target.namespace });
    if (namespace.metadata.deletionTimestamp !== undefined) {
      const why = `unable to create new content in namespace ${target.namespace} because it is being terminated`;
      throw forbidden(subjectOf(target), why);
    }
  }

  #wrongUid(target: Target, uid: string, old: ApiObject): Error {
    return conflict(
      subjectOf(target),
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }

  #suffix(): string {
    const letter = (): string => suffixLetters[Math.floor(Math.random() * suffixLetters.length)] ?? "x";
    return Array.from({ length: 5 }, letter).join("");
  }
}
