import type { ObjectMeta } from "../api/meta.ts";
import { invalid, required, tooLong, type FieldError } from "./field-errors.ts";
import { dnsLabelProblem, dnsSubdomainProblem, podUidProblem, qualifiedNameProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateLabels } from "./validate-selector.ts";

/** What a pod is named on disk for its logs is `<namespace>_<name>_<uid>`: one file name. */
const maxFileName = 255;
const uidLength = 36;

/**
 * Whether the name of a pod leads to a file that can't be.
 * @param suffix is appended to the name
 */
export function* nameTooLong({ name = "", namespace, uid }: ObjectMeta, suffix: string): Iterable<FieldError> {
  const others = (namespace || "default").length + (uid?.length || uidLength) + "__".length;
  const limit = Math.min(253, maxFileName - others) - suffix.length;
  if (name.length <= limit) return;
  const because = "its log directory is named after its namespace, name and UID";
  const appended = suffix === "" ? "" : `, and ${JSON.stringify(suffix)} is appended`;
  yield tooLong(["metadata", "name"], `${limit} characters: ${because}${appended}`);
}

const maxAnnotationBytes = 256 * 1024;

/** Checks the metadata of any object whose name is a DNS subdomain. */
export function* validateMetadata(metadata: ObjectMeta): Iterable<FieldError> {
  const path = ["metadata"];
  const { name, generateName, namespace, uid } = metadata;
  if (name === undefined || name === "") {
    yield required([...path, "name"], generateName ? "only an API server supports generateName; set name" : "");
  } else {
    const problem = dnsSubdomainProblem(name);
    if (problem !== undefined) yield invalid([...path, "name"], name, problem);
  }
  if (generateName) {
    const problem = dnsSubdomainProblem(generateName.replace(/.-$/su, "a"));
    if (problem !== undefined) yield invalid([...path, "generateName"], generateName, problem);
  }
  if (namespace !== undefined && namespace !== "") {
    const problem = dnsLabelProblem(namespace);
    if (problem !== undefined) yield invalid([...path, "namespace"], namespace, problem);
  }
  if (uid !== undefined && uid !== "") {
    const problem = podUidProblem(uid);
    if (problem !== undefined) yield invalid([...path, "uid"], uid, problem);
  }
  const { generation } = metadata;
  if (generation !== undefined && generation < 0) {
    yield invalid([...path, "generation"], generation, "must be greater than or equal to 0");
  }
  yield* validateLabels(metadata.labels ?? {}, [...path, "labels"]);
  yield* validateOwners(metadata.ownerReferences ?? [], [...path, "ownerReferences"]);
  yield* validateFinalizers(metadata.finalizers ?? [], [...path, "finalizers"]);
  let size = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    const problem = qualifiedNameProblem(key.toLowerCase());
    if (problem !== undefined) yield invalid([...path, "annotations", key], key, problem);
    size += key.length + value.length;
  }
  if (size > maxAnnotationBytes) yield tooLong([...path, "annotations"], `${maxAnnotationBytes} bytes`);
}

type Owners = NonNullable<ObjectMeta["ownerReferences"]>;

function* validateOwners(owners: Owners, path: FieldPath): Iterable<FieldError> {
  for (const [index, owner] of owners.entries()) {
    const here = [...path, index];
    const [, version = owner.apiVersion, more] = owner.apiVersion.split("/", 3);
    if (version === "" || more !== undefined) {
      yield invalid([...here, "apiVersion"], owner.apiVersion, "version must not be empty");
    }
    for (const field of ["kind", "name", "uid"] as const) {
      if (owner[field] === "") yield invalid([...here, field], "", "must not be empty");
    }
    if (owner.apiVersion === "v1" && owner.kind === "Event") {
      yield invalid([...here, "kind"], owner.kind, "an Event is disallowed from being an owner");
    }
  }
  const [first, second] = owners.filter(({ controller }) => controller === true);
  if (first === undefined || second === undefined) return;
  const both = `${first.kind}/${first.name} and ${second.kind}/${second.name}`;
  yield invalid(path, "", `only one reference can have controller set to true, found ${both}`);
}

const standardFinalizers = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

function* validateFinalizers(finalizers: readonly string[], path: FieldPath): Iterable<FieldError> {
  for (const [index, finalizer] of finalizers.entries()) {
    const here = [...path, index];
    const problem = qualifiedNameProblem(finalizer);
    if (problem !== undefined) yield invalid(here, finalizer, problem);
    else if (!finalizer.includes("/") && !standardFinalizers.has(finalizer)) {
      yield invalid(here, finalizer, "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    yield invalid(path, finalizers.join(", "), "finalizer orphan and foregroundDeletion cannot be both set");
  }
}
