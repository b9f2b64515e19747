import { age } from "./ages.ts";
import type { Exchange } from "./exchange.ts";
import { at, type Fields, fieldsAt, isFields, itemsAt, type Json, textAt } from "./objects.ts";
import { podCells } from "./pod-table.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

/** A column of `kubectl get`. */
interface Column {
  readonly name: string;
  /** Only with `-o wide`. */
  readonly wide?: boolean;
  readonly cell: (object: Fields) => Json;
}

const nameColumn: Column = { name: "Name", cell: (object) => textAt(object, "metadata.name") };
const ageColumn: Column = { name: "Age", cell: (object) => age(textAt(object, "metadata.creationTimestamp")) };

function orNone(text: string): string {
  return text === "" ? "<none>" : text;
}

function nodeStatus(node: Fields): string {
  const ready = itemsAt(node, "status.conditions").find(({ type }) => type === "Ready")?.["status"];
  const word = ready === "True" ? "Ready" : ready === undefined ? "Unknown" : "NotReady";
  return at(node, "spec.unschedulable") === true ? `${word},SchedulingDisabled` : word;
}

function roles(node: Fields): string {
  const prefix = "node-role.kubernetes.io/";
  const names = Object.keys(fieldsAt(node, "metadata.labels")).filter((label) => label.startsWith(prefix));
  return orNone(names.map((label) => label.slice(prefix.length)).join(","));
}

function address(node: Fields, type: string): string {
  return orNone(
    textAt(
      itemsAt(node, "status.addresses").find((each) => each["type"] === type),
      "address",
    ),
  );
}

function requestCondition(request: Fields): string {
  const conditions = itemsAt(request, "status.conditions").map((each) => textAt(each, "type"));
  if (textAt(request, "status.certificate") !== "") conditions.push("Issued");
  return conditions.length === 0 ? "Pending" : conditions.join(",");
}

/** The number of satisfied readiness gates. */
function gates(pod: Fields): string {
  const wanted = itemsAt(pod, "spec.readinessGates").map((gate) => gate["conditionType"]);
  const open = itemsAt(pod, "status.conditions").filter(
    (each) => wanted.includes(each["type"]) && each["status"] === "True",
  );
  return wanted.length === 0 ? "<none>" : `${open.length}/${wanted.length}`;
}

const info =
  (field: string) =>
  (object: Fields): string =>
    orNone(textAt(object, field));

const columns: Readonly<Record<string, readonly Column[]>> = {
  pods: [
    nameColumn,
    { name: "Ready", cell: (pod) => podCells(pod).ready },
    { name: "Status", cell: (pod) => podCells(pod).status },
    { name: "Restarts", cell: (pod) => podCells(pod).restarts },
    ageColumn,
    { name: "IP", wide: true, cell: info("status.podIP") },
    { name: "Node", wide: true, cell: info("spec.nodeName") },
    { name: "Nominated Node", wide: true, cell: info("status.nominatedNodeName") },
    { name: "Readiness Gates", wide: true, cell: gates },
  ],
  nodes: [
    nameColumn,
    { name: "Status", cell: nodeStatus },
    { name: "Roles", cell: roles },
    ageColumn,
    { name: "Version", cell: info("status.nodeInfo.kubeletVersion") },
    { name: "Internal-IP", wide: true, cell: (node) => address(node, "InternalIP") },
    { name: "OS-Image", wide: true, cell: info("status.nodeInfo.osImage") },
    { name: "Kernel-Version", wide: true, cell: info("status.nodeInfo.kernelVersion") },
    { name: "Container-Runtime", wide: true, cell: info("status.nodeInfo.containerRuntimeVersion") },
  ],
  events: [
    {
      name: "Last Seen",
      cell: (event) => age(textAt(event, "lastTimestamp") || textAt(event, "metadata.creationTimestamp")),
    },
    { name: "Type", cell: info("type") },
    { name: "Reason", cell: info("reason") },
    {
      name: "Object",
      cell: (event) => `${textAt(event, "involvedObject.kind").toLowerCase()}/${textAt(event, "involvedObject.name")}`,
    },
    { name: "Message", cell: (event) => textAt(event, "message").trim() },
  ],
  leases: [nameColumn, { name: "Holder", cell: info("spec.holderIdentity") }, ageColumn],
  namespaces: [nameColumn, { name: "Status", cell: info("status.phase") }, ageColumn],
  certificatesigningrequests: [
    nameColumn,
    ageColumn,
    { name: "SignerName", cell: info("spec.signerName") },
    { name: "Requestor", cell: info("spec.username") },
    { name: "Condition", cell: requestCondition },
  ],
};

/** A row's object, by `includeObject`; kubectl requests its metadata. */
function shownObject(exchange: Exchange, resource: Resource, object: Fields): Fields | undefined {
  const policy = exchange.query.get("includeObject") ?? "Metadata";
  if (policy === "None") return undefined;
  // Items of a list have no kind of their own; rows of a table do.
  if (policy === "Object") return { kind: resource.kind, apiVersion: apiVersionOf(resource), ...object };
  return metadataOf(object);
}

function metadataOf(object: Fields): Fields {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: fieldsAt(object, "metadata") };
}

/** Converts an object or a list to a table if the client prefers one (`Accept: application/json;as=Table…`). */
export function shapeAnswer(exchange: Exchange, resource: Resource, answer: Fields): Fields {
  const wanted = (exchange.header("accept") ?? "").split(",")[0] ?? "";
  if (wanted.includes("as=PartialObjectMetadata") && !Array.isArray(answer["items"])) return metadataOf(answer);
  if (!wanted.includes("as=Table")) return answer;
  const chosen = columns[resource.plural] ?? [nameColumn, ageColumn];
  const { items } = answer;
  const isList = Array.isArray(items);
  const objects = isList ? (items as Json[]).filter(isFields) : [answer];
  const { resourceVersion, continue: next, remainingItemCount } = fieldsAt(answer, "metadata");
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {
      resourceVersion,
      ...(isList && next !== undefined ? { continue: next } : {}),
      ...(isList && remainingItemCount !== undefined ? { remainingItemCount } : {}),
    },
    columnDefinitions: chosen.map(({ name, wide }) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description: "",
      priority: wide === true ? 1 : 0,
    })),
    rows: objects.map((object) => ({
      cells: chosen.map(({ cell }) => cell(object)),
      object: shownObject(exchange, resource, object),
    })),
  };
}
