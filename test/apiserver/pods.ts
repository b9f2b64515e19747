import {
  type ApiObject,
  at,
  type Draft,
  draftAt,
  draftOf,
  draftsAt,
  fieldsAt,
  type Fields,
  itemsAt,
  numberAt,
  textAt,
} from "./objects.ts";
import { completeContainer, completePod, completeTolerations, qosClass } from "./pod-defaults.ts";
import { statusProblems } from "./pod-status.ts";
import { specProblems } from "./pod-updates.ts";
import type { Problem, Strategy } from "./resource.ts";

function containerProblems(pod: Fields, list: string, names: Set<string>): Problem[] {
  return itemsAt(pod, `spec.${list}`).flatMap(({ name, image }, index): Problem[] => {
    const path = `spec.${list}[${index}]`;
    const problems: Problem[] = [];
    if (typeof name !== "string" || !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) {
      problems.push([`${path}.name`, `Invalid value: ${JSON.stringify(name ?? "")}: must be a DNS label`]);
    } else if (names.has(name)) {
      problems.push([`${path}.name`, `Duplicate value: ${JSON.stringify(name)}`]);
    } else {
      names.add(name);
    }
    if (typeof image !== "string" || image.trim() === "") problems.push([`${path}.image`, "Required value"]);
    return problems;
  });
}

/** Mounts of unknown volumes. */
function mountProblems(pod: Fields, list: string): Problem[] {
  const volumes = new Set(itemsAt(pod, "spec.volumes").map(({ name }) => name));
  return itemsAt(pod, `spec.${list}`).flatMap((container, index) =>
    itemsAt(container, "volumeMounts").flatMap(({ name }, place): Problem[] =>
      volumes.has(name)
        ? []
        : [[`spec.${list}[${index}].volumeMounts[${place}].name`, `Not found: ${JSON.stringify(name)}`]],
    ),
  );
}

const restartPolicies = ["Always", "OnFailure", "Never"];

function restartPolicyProblems(pod: Fields): Problem[] {
  const policy = textAt(pod, "spec.restartPolicy");
  if (restartPolicies.includes(policy)) return [];
  const supported = restartPolicies.map((each) => JSON.stringify(each)).join(", ");
  return [["spec.restartPolicy", `Unsupported value: ${JSON.stringify(policy)}: supported values: ${supported}`]];
}

function problemsOf(pod: Fields): Problem[] {
  const names = new Set<string>();
  const lists = ["containers", "initContainers", "ephemeralContainers"];
  const problems = lists.flatMap((list) => containerProblems(pod, list, names));
  if (itemsAt(pod, "spec.containers").length === 0) problems.push(["spec.containers", "Required value"]);
  return [...problems, ...restartPolicyProblems(pod), ...lists.flatMap((list) => mountProblems(pod, list))];
}

function resizeProblems(pod: Fields, old: ApiObject): Problem[] {
  const problems: Problem[] = [];
  if (qosClass(pod) !== qosClass(old)) {
    problems.push(["spec", "Invalid value: Pod QOS Class may not change as a result of resizing"]);
  }
  // Kubelets that support resizes report containers' resources.
  const runs = itemsAt(old, "status.containerStatuses").find((each) => at(each, "state.running") !== undefined);
  if (runs !== undefined && runs["resources"] === undefined) {
    problems.push(["spec", "Forbidden: Pod running on node without support for resize"]);
  }
  return problems;
}

function changeProblems(pod: Fields, old: ApiObject, subresource: string): Problem[] {
  if (subresource === "status") return statusProblems(pod, old);
  if (subresource === "resize") return resizeProblems(pod, old);
  const mirror = "kubernetes.io/config.mirror";
  if (fieldsAt(pod, "metadata.annotations")[mirror] === fieldsAt(old, "metadata.annotations")[mirror]) return [];
  return [[`metadata.annotations[${mirror}]`, "Forbidden: may not add, change or remove mirror annotation"]];
}

/** Restores everything except the part of `spec` that a subresource may change. */
function keepAllBut(draft: Draft, old: ApiObject, subresource: string): void {
  const given = fieldsAt(draft, "spec");
  const spec = draftOf(fieldsAt(old, "spec"));
  if (subresource === "ephemeralcontainers") {
    spec["ephemeralContainers"] = given["ephemeralContainers"];
    for (const container of draftsAt(spec, "ephemeralContainers")) completeContainer(container);
  }
  if (subresource === "resize") {
    for (const list of ["containers", "initContainers"]) {
      for (const container of draftsAt(spec, list)) {
        const wanted = itemsAt(given, list).find(({ name }) => name === container["name"]);
        for (const name of ["resources", "resizePolicy"]) container[name] = wanted?.[name];
      }
    }
    if (given["resources"] !== undefined) spec["resources"] = given["resources"];
  }
  draft["spec"] = spec;
  if (subresource !== "status") draft["status"] = old["status"];
}

export const podStrategy: Strategy = {
  countsGenerations: true,
  create: completePod,
  update: (draft, old) => {
    draft["status"] = old["status"];
    completeTolerations(draftAt(draft, "spec"));
  },
  updateSubresource: (draft, old, subresource) => {
    keepAllBut(draft, old, subresource);
    // Ignored here, because old kubelets corrupt owner references.
    if (subresource === "status") {
      draftAt(draft, "metadata")["ownerReferences"] = old.metadata.ownerReferences;
      draftAt(draft, "status")["qosClass"] = at(old, "status.qosClass");
    }
  },
  validate: (pod, old, subresource) => [
    ...problemsOf(pod),
    ...(old !== undefined && subresource === "" ? specProblems(fieldsAt(pod, "spec"), fieldsAt(old, "spec")) : []),
    ...(old === undefined ? [] : changeProblems(pod, old, subresource)),
  ],
  graceSeconds: (pod, asked) => {
    if (textAt(pod, "spec.nodeName") === "") return 0;
    if (["Succeeded", "Failed"].includes(textAt(pod, "status.phase"))) return 0;
    const seconds = asked ?? numberAt(pod, "spec.terminationGracePeriodSeconds") ?? 30;
    return seconds < 0 ? 1 : seconds;
  },
};
