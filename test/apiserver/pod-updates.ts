import { draftOf, draftsAt, type Fields, itemsAt, numberAt, sameJson, textAt } from "./objects.ts";
import type { Problem } from "./resource.ts";

/** A pod's `spec` without the fields that have their own rules. */
function withoutMutable(spec: Fields): Fields {
  const rest = draftOf(spec);
  for (const name of ["activeDeadlineSeconds", "tolerations", "schedulingGates"]) delete rest[name];
  for (const list of ["containers", "initContainers"]) {
    for (const container of draftsAt(rest, list)) delete container["image"];
  }
  return rest;
}

const maxSeconds = 2 ** 31 - 1;

/** A deadline may be set, and decreased. */
function deadlineProblem(spec: Fields, old: Fields): string | undefined {
  const [wanted, before] = [spec, old].map((each) => numberAt(each, "activeDeadlineSeconds"));
  if (wanted === undefined) {
    return before === undefined
      ? undefined
      : "Invalid value: null: must not update from a positive integer to nil value";
  }
  if (wanted < 0 || wanted > maxSeconds) {
    return `Invalid value: ${wanted}: must be between 0 and ${maxSeconds}, inclusive`;
  }
  if (before === undefined || wanted <= before) return undefined;
  return `Invalid value: ${wanted}: must be less than or equal to previous value`;
}

/** Tolerations may be added, and their seconds changed. */
function keepsTolerations(spec: Fields, old: Fields): boolean {
  const untimed = (each: Fields): Fields => ({ ...each, tolerationSeconds: null });
  const wanted = itemsAt(spec, "tolerations").map(untimed);
  return itemsAt(old, "tolerations").every((each) => wanted.some((other) => sameJson(other, untimed(each))));
}

/** Scheduling gates may only be removed. */
function gateProblems(spec: Fields, old: Fields): Problem[] {
  const known = new Set(itemsAt(old, "schedulingGates").map(({ name }) => name));
  return itemsAt(spec, "schedulingGates").flatMap((gate, index): Problem[] => {
    if (known.has(gate["name"])) return [];
    const why = `Forbidden: only deletion is allowed, but found new scheduling gate '${textAt(gate, "name")}'`;
    return [[`spec.schedulingGates[${index}].name`, why]];
  });
}

/** Forbidden changes of a pod's `spec` (ValidatePodUpdate). */
export function specProblems(spec: Fields, old: Fields): Problem[] {
  const deadline = deadlineProblem(spec, old);
  if (deadline !== undefined) return [["spec.activeDeadlineSeconds", deadline]];
  const problems = gateProblems(spec, old);
  if (!keepsTolerations(spec, old)) {
    const why = "Forbidden: existing toleration can not be modified except its tolerationSeconds";
    problems.push(["spec.tolerations", why]);
  }
  const grace = "terminationGracePeriodSeconds";
  const mendsGrace = (numberAt(old, grace) ?? 0) < 0 && numberAt(spec, grace) === 1;
  const rest = withoutMutable(mendsGrace ? { ...spec, [grace]: old[grace] } : spec);
  if (sameJson(rest, withoutMutable(old))) return problems;
  problems.push([
    "spec",
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
  ]);
  return problems;
}
